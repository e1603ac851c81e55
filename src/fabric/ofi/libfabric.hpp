#pragma once

#include <string>

#include <rdma/fabric.h>

/// The functions that libfabric exports; all others belong to the objects that these return.
namespace dunlin::ofi {

/// libfabric is loaded when it is first needed, and not linked. Debian's brings libinfinipath and
/// libpsm2, whose constructors measure the clock for 0.2 s and install signal handlers, in every
/// process that is linked with them, whether it joins such a group or not.
struct Libfabric {
  decltype(&fi_getinfo) getinfo;
  decltype(&fi_freeinfo) freeinfo;
  decltype(&fi_dupinfo) dupinfo;
  decltype(&fi_fabric) fabric;
  decltype(&fi_strerror) strerror;
};

/// Loads libfabric if it is not loaded yet. Throws Error that says why it cannot be loaded. Any
/// thread.
[[nodiscard]] const Libfabric& libfabric();

/// Why libfabric cannot be loaded; empty if it is loaded, or can be.
[[nodiscard]] std::string why_not_loaded();

}  // namespace dunlin::ofi

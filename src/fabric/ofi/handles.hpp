#pragma once

#include <memory>
#include <string>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <dunlin/error.hpp>

#include "fabric/ofi/libfabric.hpp"

/// libfabric's objects, owned: closed at destruction, in the reverse order of their members.
namespace dunlin::ofi {

struct CloseFid {
  template <class T>
  void operator()(T* object) const noexcept {
    static_cast<void>(fi_close(&object->fid));
  }
};
template <class T>
using Fid = std::unique_ptr<T, CloseFid>;

struct FreeInfo {
  void operator()(fi_info* info) const noexcept { libfabric().freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

/// Returns a call's result; throws Error that says what failed and why if the result is negative.
inline long checked(long result, const std::string& what) {
  if (result >= 0) return result;
  throw Error(what + " failed: " + libfabric().strerror(static_cast<int>(-result)));
}

}  // namespace dunlin::ofi

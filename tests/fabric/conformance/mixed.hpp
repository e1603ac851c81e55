#pragma once

#include <cstdint>
#include <string>

#include <dunlin/join.hpp>

#include "fabric/conformance/harness.hpp"

/// Members of a mixed fabric that pretend to be on several hosts.
namespace dunlin::conformance {

/// The name of a rank's host.
using HostOf = std::string (*)(Rank rank);
/// Neighbours in rank are on different hosts: with two nodes, all goes over the network.
[[nodiscard]] std::string in_turn(Rank rank);
/// Ranks 0 and 1 are on one host, 2 and 3 on the next.
[[nodiscard]] std::string in_pairs(Rank rank);

/// The network between hosts: of ofi, an RDMA device, or if both are empty TCP.
struct Between {
  std::string provider = {};
  std::string device = {};
};
[[nodiscard]] Backend on_hosts(const std::string& variant, HostOf host_of,
                               const Between& between = {});

}  // namespace dunlin::conformance

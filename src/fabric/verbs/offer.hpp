#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dunlin/join.hpp>

#include "fabric/stream/forming_network.hpp"

namespace dunlin::verbs {

/// An RDMA device by an address of this host.
struct DeviceAddress {
  std::string device;
  std::string address;
  bool in_software = false;  // the kernel's own device, on an interface of any kind
};
/// All devices, in the order of the interfaces; empty where there is no way to ask.
[[nodiscard]] std::vector<DeviceAddress> device_addresses();

/// Offers RDMA devices for a fabric of so many members that has other ways, too: so only processors
/// do atomics, never the device. Throws Error.
[[nodiscard]] stream::Offer offer(const JoinOptions& options, std::uint32_t members);

}  // namespace dunlin::verbs

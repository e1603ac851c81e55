#pragma once

#include <span>
#include <string>
#include <vector>

#include <sys/socket.h>

#include "fabric/verbs/handles.hpp"

/// The RDMA devices of this host, their addresses, and their promises.
namespace dunlin::verbs {

/// A device by an address of this host.
struct Place {
  std::string device;
  std::string address;
  sockaddr_storage socket_address{};
  bool in_software = false;  // the kernel's own device, on an interface of any kind
};

/// All places, in the order of the interfaces. Throws Error if there is no way to ask.
[[nodiscard]] std::vector<Place> list_places();

struct Choice {
  std::string device;   // empty: any
  std::string address;  // empty: any
};
struct Network {
  Place place;
  std::string why;
  std::string danger = {};            // what forking children endanger; empty: nothing
  bool atomics_by_processor = false;  // even if the device has atomics
};
/// Throws Error that lists the devices if there is no such device.
[[nodiscard]] Network choose_network(const Choice& choice);

/// The differences between devices that matter here.
struct Traits {
  std::string kind;          // "RoCE", "iWARP", "InfiniBand"
  bool is_iwarp = false;     // promises no order of placement, and the caller speaks first
  bool in_software = false;  // copies word by word, ascending, instead of whole lines
  bool atomics = false;
  bool atomics_coherent_with_cpu = false;
  ibv_device_attr limits{};
  std::uint32_t max_operation_bytes = 0;
};
[[nodiscard]] Traits examine(ibv_context& device, std::uint8_t port);

/// How many reads and atomics may be under way on a connection: ours, and the peer's.
struct Depths {
  std::uint8_t initiator = 0;
  std::uint8_t responder = 0;
};
/// The depths that the device can have, up to the useful number.
[[nodiscard]] Depths depths_of(const ibv_device_attr& limits) noexcept;
/// The lesser depths of both sides. `offered` is as seen from here, and 0 where its side does not
/// say.
[[nodiscard]] Depths agreed(const Depths& ours, const Depths& offered) noexcept;

}  // namespace dunlin::verbs

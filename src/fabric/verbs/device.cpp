#include "fabric/verbs/device.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include "fabric/forking.hpp"

namespace dunlin::verbs {
namespace {

struct FreeInterfaces {
  void operator()(ifaddrs* list) const noexcept { freeifaddrs(list); }
};
struct FreeDevices {
  void operator()(ibv_device** list) const noexcept { ibv_free_device_list(list); }
};

/// The address as text; empty if other hosts could not reach it.
std::string text_of(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.sa_family == AF_INET) {
    const auto& ip = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &ip.sin_addr, text.data(), text.size());
  } else if (address.sa_family == AF_INET6) {
    const auto& ip = reinterpret_cast<const sockaddr_in6&>(address);
    if (IN6_IS_ADDR_LINKLOCAL(&ip.sin6_addr)) return {};
    inet_ntop(AF_INET6, &ip.sin6_addr, text.data(), text.size());
  }
  return text.data();
}

/// Prepares for forks before any memory is registered, so that the birth of a child never takes it
/// away from under the device: kernels before 5.12 would give the parent a copy of the memory as
/// soon as it writes. This costs a system call for each registration where it is needed, and
/// nothing elsewhere.
std::string prepare_for_children() {
  static auto& once = *new ForkMutex;  // callers must exclude each other here
  const std::scoped_lock lock(once);
  if (ibv_is_fork_initialized() != IBV_FORK_DISABLED) return {};
  const int error = ibv_fork_init();
  if (error == 0) return {};
  return "fork no children while joined, not even for system(): they would take memory away from "
         "under the device (ibv_fork_init: " +
         error_text(error) +
         (error == EINVAL ? "; the process had registered memory before, set IBV_FORK_SAFE=1)"
                          : ")");
}

EventChannel open_events() {
  static_cast<void>(prepare_for_children());
  return EventChannel(made(rdma_create_event_channel(),
                           "asking the kernel for RDMA connections (modprobe rdma_ucm)"));
}

std::vector<std::string> device_names() {
  int count = 0;
  const std::unique_ptr<ibv_device*, FreeDevices> list(ibv_get_device_list(&count));
  std::vector<std::string> names;
  for (int i = 0; list && i < count; ++i) names.emplace_back(ibv_get_device_name(list.get()[i]));
  return names;
}

/// Whether the kernel itself is the device: such devices have no hardware, and only their vendor
/// tells.
bool is_in_software(const ibv_device_attr& limits) {
  constexpr std::uint32_t kSoftRoce = 0xff'ffff;
  constexpr std::uint32_t kSoftIwarp = 0x62'6d74;
  return limits.vendor_id == kSoftRoce || limits.vendor_id == kSoftIwarp;
}

[[noreturn]] void none_such(const Choice& choice, const std::vector<Place>& places) {
  std::string text = "there is no RDMA device";
  if (!choice.device.empty()) text += " '" + choice.device + "'";
  if (!choice.address.empty()) text += " with address '" + choice.address + "'";
  text += ". This host has:";
  for (const Place& place : places) text += "\n  " + place.device + " " + place.address;
  bool none = places.empty();
  for (const std::string& name : device_names()) {
    const bool placed = std::any_of(places.begin(), places.end(),
                                    [&](const Place& place) { return place.device == name; });
    if (placed) continue;
    none = false;
    text +=
        "\n  " + name + ", which has no address: give its network interface one (ip address add)";
  }
  if (none) text += " none";
  throw Error(text);
}

}  // namespace

std::vector<Place> list_places() {
  const EventChannel events = open_events();
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) throw Error("listing the addresses failed: " + error_text(errno));
  const std::unique_ptr<ifaddrs, FreeInterfaces> interfaces(first);
  std::vector<Place> places;
  for (const ifaddrs* next = first; next != nullptr; next = next->ifa_next) {
    if (next->ifa_addr == nullptr) continue;
    Place place{.device = {}, .address = text_of(*next->ifa_addr)};
    if (place.address.empty()) continue;
    const bool v6 = next->ifa_addr->sa_family == AF_INET6;
    std::memcpy(&place.socket_address, next->ifa_addr,
                v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
    const Id id = new_id(events.get());
    auto* const address = reinterpret_cast<sockaddr*>(&place.socket_address);
    if (rdma_bind_addr(id.get(), address) != 0 || id->verbs == nullptr) continue;
    place.device = ibv_get_device_name(id->verbs->device);
    ibv_device_attr limits{};
    place.in_software = ibv_query_device(id->verbs, &limits) == 0 && is_in_software(limits);
    places.push_back(std::move(place));
  }
  return places;
}

Network choose_network(const Choice& choice) {
  const std::vector<Place> places = list_places();
  std::vector<const Place*> fitting;
  for (const Place& place : places)
    if ((choice.device.empty() || place.device == choice.device) &&
        (choice.address.empty() || place.address == choice.address))
      fitting.push_back(&place);
  if (fitting.empty()) none_such(choice, places);
  const bool asked = !choice.device.empty() || !choice.address.empty();
  std::string why = asked ? "as asked" : "nothing was asked";
  if (fitting.size() > 1)
    why += "; the first of " + std::to_string(fitting.size()) + " that fit";
  else if (!asked)
    why += "; the only one here";
  return {*fitting.front(), std::move(why), prepare_for_children()};
}

Traits examine(ibv_context& device, std::uint8_t port) {
  Traits traits;
  if (ibv_query_device(&device, &traits.limits) != 0)
    throw Error("asking the device for its limits failed: " + error_text(errno));
  ibv_port_attr about{};
  if (ibv_query_port(&device, port, &about) != 0)
    throw Error("asking the device for its port failed: " + error_text(errno));
  traits.is_iwarp = device.device->transport_type == IBV_TRANSPORT_IWARP;
  const bool ethernet = about.link_layer == IBV_LINK_LAYER_ETHERNET;
  traits.kind = traits.is_iwarp ? "iWARP" : ethernet ? "RoCE" : "InfiniBand";
  traits.in_software = is_in_software(traits.limits);
  traits.atomics = traits.limits.atomic_cap != IBV_ATOMIC_NONE && !traits.is_iwarp;
  traits.atomics_coherent_with_cpu = traits.limits.atomic_cap == IBV_ATOMIC_GLOB;
  traits.max_operation_bytes = about.max_msg_sz;
  const Depths depths = depths_of(traits.limits);
  if (depths.initiator == 0 || depths.responder == 0)
    throw Error(
        "the device says that no connection may have a read under way (max_qp_init_rd_atom " +
        std::to_string(traits.limits.max_qp_init_rd_atom) + ", max_qp_rd_atom " +
        std::to_string(traits.limits.max_qp_rd_atom) + "): take another one");
  return traits;
}

Depths depths_of(const ibv_device_attr& limits) noexcept {
  const auto up_to = [](int limit) { return static_cast<std::uint8_t>(std::clamp(limit, 0, 16)); };
  return {up_to(limits.max_qp_init_rd_atom), up_to(limits.max_qp_rd_atom)};
}

Depths agreed(const Depths& ours, const Depths& offered) noexcept {
  const auto lesser = [](std::uint8_t one, std::uint8_t other) {
    return other == 0 ? one : std::min(one, other);
  };
  return {lesser(ours.initiator, offered.initiator), lesser(ours.responder, offered.responder)};
}

}  // namespace dunlin::verbs

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/ofi/handles.hpp"
#include "fabric/rendezvous/local_address.hpp"

/// Which of libfabric's networks to use, and the facts about one that must be known beforehand.
namespace dunlin::ofi {

/// The differences between providers; a file each.
struct Provider {
  std::string_view name;
  /// The address of this host for members that meet there, in the form that fi_getinfo takes;
  /// empty: leave it to libfabric.
  rendezvous::LocalAddress (*local_address)(const std::string& rendezvous);
  /// Whether two endpoint addresses (of fi_getname) are of the same host.
  bool (*same_host)(std::span<const std::byte> one, std::span<const std::byte> other);
  /// An endpoint address as text: "10.0.0.7:40112".
  std::string (*text_of)(std::span<const std::byte> endpoint_address);
  /// Fills receive buffers from the front, and only while we read a completion queue: so they may
  /// be watched, and need no completions.
  bool fills_in_order;
};
extern const Provider kTcp;  // tcp.cpp

/// The requested network.
struct Choice {
  std::string provider;
  std::string device;   // empty: any
  std::string address;  // empty: one from which the rendezvous is reached
  std::string rendezvous;
};

struct Network {
  Info info;
  std::string description;  // provider, device, address, and why these
  bool fills_in_order = false;
};

/// Error if there is no such network; it lists what there is.
[[nodiscard]] Network choose_network(const Choice& choice);

/// A member's endpoint address as text; empty if the provider has no form for it.
[[nodiscard]] std::string endpoint_address_text(const std::string& provider,
                                                std::span<const std::byte> endpoint_address);

/// How many of the endpoint addresses are of the same host as ours; 1 if that cannot be known.
[[nodiscard]] std::uint32_t count_on_this_host(
    const std::string& provider, std::span<const std::vector<std::byte>> endpoint_addresses,
    std::size_t ours);

/// "provider: device address" of all networks that could be chosen.
[[nodiscard]] std::vector<std::string> list_networks();
/// "provider: why" of those that could not.
[[nodiscard]] std::vector<std::string> list_unfit_networks();

}  // namespace dunlin::ofi

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

/// What differs between providers; each provider has a file.
struct Provider {
  std::string_view name;
  /// The address of this host for members that meet at that rendezvous, in the form that fi_getinfo
  /// takes; empty: libfabric chooses.
  rendezvous::LocalAddress (*local_address)(const std::string& rendezvous);
  /// Whether two endpoint addresses (from fi_getname) are on the same host.
  bool (*same_host)(std::span<const std::byte> one, std::span<const std::byte> other);
  /// An endpoint address as text: "10.0.0.7:40112".
  std::string (*text_of)(std::span<const std::byte> endpoint_address);
  /// Whether the provider fills receive buffers from the front, and only while we read a completion
  /// queue: then the buffers may be watched, and need no completions.
  bool fills_in_order;
};
extern const Provider kTcp;  // tcp.cpp

/// The requested network.
struct Choice {
  std::string provider;
  std::string device;   // empty: any
  std::string address;  // empty: from which the rendezvous is reached
  std::string rendezvous;
};

struct Network {
  Info info;
  std::string description;  // provider, device, address, and why these
  bool fills_in_order = false;
};

/// Throws Error that lists the networks if there is no such network.
[[nodiscard]] Network choose_network(const Choice& choice);

/// A member's endpoint address as text; empty if the provider has no form for it.
[[nodiscard]] std::string endpoint_address_text(const std::string& provider,
                                                std::span<const std::byte> endpoint_address);

/// How many of the endpoint addresses are on the host of `ours`; 1 if that cannot be known.
[[nodiscard]] std::uint32_t count_on_this_host(
    const std::string& provider, std::span<const std::vector<std::byte>> endpoint_addresses,
    std::size_t ours);

/// All networks that could be chosen, as "provider: device address".
[[nodiscard]] std::vector<std::string> list_networks();
/// All networks that could not be chosen, as "provider: why".
[[nodiscard]] std::vector<std::string> list_unfit_networks();

}  // namespace dunlin::ofi

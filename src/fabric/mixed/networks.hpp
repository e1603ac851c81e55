#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/fabric/network.hpp>

#include "fabric/mixed/host.hpp"
#include "fabric/stream/forming_network.hpp"
#include "fabric/verbs/offer.hpp"

/// Over which networks a member can reach other hosts, and which of them a group takes.
/// docs/mixed.md gives MIX-N1.
///  MIX-N1  All members of a group use one network between hosts: the first of verbs, ofi, tcp that
///      every founder offers. A later member that does not offer that one is refused.
namespace dunlin::mixed {

/// How to make an offer.
struct NetworkPlan {
  enum class Kind : std::uint8_t { verbs, ofi, tcp };
  Kind kind = Kind::tcp;
  NetworkJoinOptions options = {};
  bool optional = false;  // without it, there are others
};

/// What a member with these options offers, the best first. `devices`: RDMA devices of this host.
///
/// A device that is named decides, as do a provider (ofi) and encryption (tcp). Otherwise TCP, and
/// before it RDMA devices made of hardware: those of the kernel are slower than TCP.
[[nodiscard]] std::vector<NetworkPlan> plan_networks(const NetworkJoinOptions& options,
                                                     std::span<const verbs::DeviceAddress> devices);

/// A member's offers, the best first, and why there is not a better one; empty: nothing failed.
struct Offers {
  std::vector<stream::Offer> all;
  std::string failed = {};
};
/// Throws Error if none can be made.
[[nodiscard]] Offers make_offers(const NetworkJoinOptions& options, std::uint32_t members);

/// The first that all members have; none if there is no such.
[[nodiscard]] std::optional<std::size_t> choose_network(std::span<const stream::Offer> offers,
                                                        std::span<const Endpoint> members);

/// "verbs", "verbs or tcp".
[[nodiscard]] std::string names_of(std::span<const NetworkEndpoint> networks);

}  // namespace dunlin::mixed

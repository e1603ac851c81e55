#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/join.hpp>

#include "fabric/mixed/host.hpp"
#include "fabric/stream/forming_network.hpp"
#include "fabric/verbs/offer.hpp"

/// The networks over which a member can reach other hosts, and which of them a group takes.
/// docs/mixed.md gives MIX-N1.
///  MIX-N1  All members of a group use one network between hosts: the first of verbs, ofi, tcp that
///      every founder offers. A later member that does not offer that one is refused.
namespace dunlin::mixed {

/// A plan to make one offer.
struct NetworkPlan {
  enum class Kind : std::uint8_t { verbs, ofi, tcp };
  Kind kind = Kind::tcp;
  JoinOptions options = {};
  bool optional = false;  // true: other plans may replace it
};

/// What a member with these options offers, the best first. `devices` are RDMA devices of this
/// host.
///
/// A device that the options name decides, as do a provider (ofi) and encryption (tcp). Otherwise
/// the member offers TCP, and before it RDMA devices made of hardware: those of the kernel are
/// slower than TCP.
[[nodiscard]] std::vector<NetworkPlan> plan_networks(const JoinOptions& options,
                                                     std::span<const verbs::DeviceAddress> devices);

/// A member's offers, the best first, and why there is no better one; empty: nothing failed.
struct Offers {
  std::vector<stream::Offer> all;
  std::string failed = {};
};
/// Throws Error if no offer can be made.
[[nodiscard]] Offers make_offers(const JoinOptions& options, std::uint32_t members);

/// The index of the first network that all members have; none if there is no such network.
[[nodiscard]] std::optional<std::size_t> choose_network(std::span<const stream::Offer> offers,
                                                        std::span<const Endpoint> members);

/// The names of the networks: "verbs", "verbs or tcp".
[[nodiscard]] std::string names_of(std::span<const NetworkEndpoint> networks);

}  // namespace dunlin::mixed

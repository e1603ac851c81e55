#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include <dunlin/error.hpp>
#include <dunlin/join.hpp>
#include <dunlin/limits.hpp>

#include "fabric/member_list.hpp"
#include "fabric/rendezvous/crypto.hpp"
#include "fabric/rendezvous/roster_exchange.hpp"

/// The step between a rendezvous and the streams of a group: the members' identities, and how they
/// prove them.
namespace dunlin::rendezvous {

/// How many members the options of a network's join() name. Throws Error if that is none, more than
/// streams can have, or makes no sense.
[[nodiscard]] std::uint32_t count_members(const JoinOptions& options);

/// STR-S7: the proof to `to` that `from` connects, by a key that only members know.
[[nodiscard]] Digest prove(const std::array<std::byte, 32>& key, Rank from, Rank to);

/// The endpoints and proofs of all members, by rank.
struct PeerEndpoints {
  std::vector<std::string> names;
  std::vector<std::vector<std::byte>> endpoint_addresses;
  std::vector<Digest> our_proofs;    // STR-S7: what we show each peer
  std::vector<Digest> their_proofs;  // what each peer must show us
};
[[nodiscard]] PeerEndpoints peer_endpoints(const Roster& roster);

/// The options of a rendezvous that the options of a network's join() ask for.
[[nodiscard]] Options rendezvous_options(const JoinOptions& options);

}  // namespace dunlin::rendezvous

#pragma once

#include <span>
#include <string>
#include <vector>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>

#include "fabric/member_list.hpp"
#include "fabric/rendezvous/crypto.hpp"
#include "fabric/rendezvous/roster_exchange.hpp"

/// What comes between a rendezvous and the streams of a group: who is whom, and how they prove it.
namespace dunlin::rendezvous {

/// How many members the options of a network's join() name; Error if that is none, more than
/// streams can have, or makes no sense.
template <class JoinOptions>
[[nodiscard]] std::uint32_t count_members(const JoinOptions& options) {
  const MemberList list = member_list({.group = options.group,
                                       .members = options.members,
                                       .names = options.names,
                                       .name = options.name,
                                       .rank = options.rank,
                                       .limit = kMaxStreamMembers,
                                       .limit_name = "kMaxStreamMembers"});
  return static_cast<std::uint32_t>(list.names.size());
}

/// Of each member, by rank.
struct PeerEndpoints {
  std::vector<std::string> names;
  std::vector<std::vector<std::byte>> endpoint_addresses;
  std::vector<Digest> our_proofs;    // STR-S7: what we show it
  std::vector<Digest> their_proofs;  // and what it must show us
};
[[nodiscard]] PeerEndpoints peer_endpoints(const Roster& roster);

/// To meet as the options of a network's join() say.
template <class JoinOptions>
[[nodiscard]] Options rendezvous_options(const JoinOptions& options) {
  return {.address = options.rendezvous,
          .secret = options.secret,
          .tls = options.tls,
          .group = options.group,
          .members = options.members,
          .names = options.names,
          .name = options.name,
          .rank = options.rank,
          .timeout_ms = options.timeout_ms,
          .may_host = options.may_serve};
}

}  // namespace dunlin::rendezvous

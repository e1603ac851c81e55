#pragma once

#include <span>
#include <string>
#include <vector>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>

#include "fabric/meeting/crypto.hpp"
#include "fabric/meeting/meeting.hpp"
#include "fabric/member_list.hpp"

/// What comes between a meeting and the streams of a group: who is whom, and how they prove it.
namespace dunlin::meeting {

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
struct Introductions {
  std::vector<std::string> names;
  std::vector<std::vector<std::byte>> cards;
  std::vector<Digest> our_proofs;    // STR-S7: what we show it
  std::vector<Digest> their_proofs;  // and what it must show us
};
[[nodiscard]] Introductions introduce(const Roster& roster);

/// To meet as the options of a network's join() say.
template <class JoinOptions>
[[nodiscard]] Options meeting_of(const JoinOptions& options) {
  return {.address = options.meeting,
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

}  // namespace dunlin::meeting

#pragma once

#include <string>
#include <vector>

#include "fabric/meeting/meeting.hpp"
#include "fabric/stream/frame.hpp"

/// What comes between a meeting and the streams of a group: who is whom, and how they prove it.
namespace dunlin::meeting {

/// How many members the options name; Error if that is none, or more than streams can have.
[[nodiscard]] std::uint32_t count_members(const std::string& group, std::uint32_t members,
                                          const std::vector<std::string>& names);

/// Of each member, by rank.
struct Introductions {
  std::vector<std::string> names;
  std::vector<std::vector<std::byte>> cards;
  std::vector<stream::Proof> our_proofs;    // S7: what we show it
  std::vector<stream::Proof> their_proofs;  // and what it must show us
};
[[nodiscard]] Introductions introduce(const Roster& roster);

}  // namespace dunlin::meeting

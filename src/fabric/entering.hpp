#pragma once

#include <string>

#include <dunlin/fabric/pending_join.hpp>

#include "fabric/core/core.hpp"

/// What all backends have in common when a newcomer enters their fabric.
namespace dunlin {

/// Throws Error for an entry that no members could have sent.
void check(const Entry& entry);

/// Fills in the names of all ranks, and which ranks have no member.
void take_members(FabricSetup& setup, const Entry& entry);

/// Names a member or a newcomer for messages: "'c' (rank 2)".
[[nodiscard]] std::string member_text(const Entry& entry, Rank rank);

}  // namespace dunlin

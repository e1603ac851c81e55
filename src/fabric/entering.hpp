#pragma once

#include <string>

#include <dunlin/fabric/pending_join.hpp>

#include "fabric/core/core.hpp"

/// The common part of the ways by which a newcomer enters a backend's fabric.
namespace dunlin {

/// Error if no members could have been told this.
void check(const Entry& entry);

/// Fills in the names of all ranks, and which ranks have no member.
void take_members(FabricSetup& setup, const Entry& entry);

/// "'c' (rank 2)", of a member or a newcomer.
[[nodiscard]] std::string member_text(const Entry& entry, Rank rank);

}  // namespace dunlin

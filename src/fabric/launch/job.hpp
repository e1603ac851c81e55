#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fabric/launch/environment.hpp"

namespace dunlin::launch {

/// This process's place in its job, as its launcher gives it.
struct Job {
  std::string launcher;  // as DUNLIN_LAUNCHER names it
  std::string title;     // as people do
  std::uint32_t rank = 0;
  std::string rank_variable = {};
  std::optional<std::uint32_t> members = {};
  std::string members_variable = {};
  std::string id = {};  // of the job: no other on these hosts has it
  /// Whether all members are on this host; if not, where the first is, if that is told.
  std::optional<bool> on_one_host = {};
  std::string first_host = {};
  std::string hosts_because = {};  // the variables that say so, and their values
};

/// The innermost launcher, or the one that DUNLIN_LAUNCHER names; none, if there is none. Error if
/// what it says is incomplete, or contradicts itself.
[[nodiscard]] std::optional<Job> find_job(const Environment& environment);

}  // namespace dunlin::launch

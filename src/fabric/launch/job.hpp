#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fabric/launch/environment.hpp"

namespace dunlin::launch {

/// This process's place in its job, as its launcher gives it.
struct Job {
  std::string launcher;  // the name in DUNLIN_LAUNCHER
  std::string title;     // the name for people
  std::uint32_t rank = 0;
  std::string rank_variable = {};
  std::optional<std::uint32_t> members = {};
  std::string members_variable = {};
  std::string id = {};  // names the job; unique on these hosts
  /// Whether all members are on this host; none: the launcher does not say.
  std::optional<bool> on_one_host = {};
  std::string first_host = {};
  std::string hosts_because = {};  // the variables that say so, and their values
};

/// The job of the innermost launcher, or of the one that DUNLIN_LAUNCHER names; none if there is no
/// launcher. Throws Error if what it says is incomplete, or contradicts itself.
[[nodiscard]] std::optional<Job> find_job(const Environment& environment);

}  // namespace dunlin::launch

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "routing/record.hpp"
#include "routing/rows.hpp"

/// One run of a plan, on processes of this host or in the simulator.
namespace dunlin::routing {

/// What the routers did, besides what the listener was told.
struct Finish {
  std::vector<Installed> tables;
};

using Listener = std::function<void(const EventRecord&)>;

/// Forks a process for each router; this process becomes the station. Returns or throws with no
/// process left. Throws Error if a router fails, or on SIGINT, SIGTERM and SIGHUP; while the
/// routers are only being started, those end this process and all routers.
[[nodiscard]] Finish run_on_shm(const Plan& plan, const Listener& listener);

/// All members in this thread, in virtual time.
[[nodiscard]] Finish run_on_sim(const Plan& plan, const std::string& profile, std::uint64_t seed,
                                const Listener& listener);

}  // namespace dunlin::routing

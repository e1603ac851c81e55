#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cluster/cluster.hpp"
#include "routing/record.hpp"
#include "routing/rows.hpp"

/// One run of a plan, on processes of one host or of several, or in the simulator.
namespace dunlin::routing {

/// What the routers did, besides what the listener was told.
struct Finish {
  std::vector<Installed> tables;
};

using Listener = std::function<void(const EventRecord&)>;
/// Told of the network, in one line, as soon as all are connected.
using NetworkListener = std::function<void(const std::string&)>;

/// What host 0 does: forks a process for each of its routers; this process becomes the station.
/// Returns or throws with no process left. Throws Error if a router fails, or on SIGINT, SIGTERM
/// and SIGHUP (while the routers are only being started, those end this process and all routers);
/// BadInput if another host has another plan.
[[nodiscard]] Finish run_on_processes(const Plan& plan, const app::Cluster& cluster,
                                      const Listener& listener,
                                      const NetworkListener& network = {});

/// What every other host does: forks a process for each of its routers, and waits for their end.
/// Throws as run_on_processes() does there, and with the same sentence.
void serve_on_processes(const Plan& plan, const app::Cluster& cluster,
                        const NetworkListener& network);

/// All members in this thread, in virtual time.
[[nodiscard]] Finish run_on_sim(const Plan& plan, const std::string& profile, std::uint64_t seed,
                                const Listener& listener);

}  // namespace dunlin::routing

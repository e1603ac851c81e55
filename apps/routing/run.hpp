#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/cluster.hpp"
#include "cluster/watch.hpp"
#include "routing/record.hpp"
#include "routing/rows.hpp"

/// One run of a plan, on processes of one host or of several, or in the simulator.
namespace dunlin::routing {

/// The results of a run that the listener was not told.
struct Finish {
  std::vector<Installed> tables;
};

using Listener = std::function<void(const EventRecord&)>;
/// Told of the network, in one line, as soon as all are connected.
using NetworkListener = std::function<void(const std::string&)>;

/// All hosts call this first: they tell each other their plans, and watch each other from then on.
/// BadInput, with the same sentence on each of them, if they differ; Error if they do not all come,
/// or on a signal. A single host agrees with itself.
[[nodiscard]] std::unique_ptr<app::Watch> agree(const std::vector<Plan>& plans,
                                                const app::Cluster& cluster);

/// Host 0 calls this: it forks a process for each of its routers, and one for the station; this
/// process passes on what the station tells. Returns or throws with no process left. Throws Error
/// if a router fails, as soon as it does, if a host that is watched has ended, or on SIGINT,
/// SIGTERM and SIGHUP.
[[nodiscard]] Finish run_on_processes(const Plan& plan, const app::Cluster& cluster,
                                      const Listener& listener, const NetworkListener& network = {},
                                      app::Watch* watch = nullptr);

/// Every other host calls this: it forks a process for each of its routers, and waits for their
/// end. Throws as run_on_processes() does there, and with the same sentence; on a signal to this
/// host alone the others say that its routers are lost.
void serve_on_processes(const Plan& plan, const app::Cluster& cluster,
                        const NetworkListener& network, app::Watch* watch);

/// All members in this thread, in virtual time.
[[nodiscard]] Finish run_on_sim(const Plan& plan, const std::string& profile, std::uint64_t seed,
                                const Listener& listener);

}  // namespace dunlin::routing

#include <algorithm>
#include <deque>

#include <dunlin/fabric/sim.hpp>

#include "routing/router.hpp"
#include "routing/run.hpp"
#include "routing/station.hpp"

namespace dunlin::routing {

namespace {

constexpr std::uint64_t kLimitNs = 3'600'000'000'000;  // an hour of virtual time
constexpr double kComputationsOfPatience = 10;

/// A router does not poll while it computes; with many links it would pass for dead.
sim::Profile patient(sim::Profile profile, const Plan& plan, const ComputeModel& model) {
  const double look_ns = model.ns_per_arc + profile.cpu.entry_ns;
  const double longest_ns = look_ns * static_cast<double>(plan.topology().arcs.size());
  if (profile.silence_timeout_ns != 0) {  // 0: never
    profile.silence_timeout_ns =
        std::max(profile.silence_timeout_ns, kComputationsOfPatience * longest_ns);
  }
  return profile;
}

}  // namespace

Finish run_on_sim(const Plan& plan, const std::string& profile, std::uint64_t seed,
                  const Listener& listener) {
  const ComputeModel model = compute_model(profile);
  sim::World world(patient(sim::profile(profile), plan, model), plan.members(), seed);
  std::deque<Table<Row>> tables;
  std::deque<Router> routers;
  for (Rank rank = 0; rank < plan.members(); ++rank) {
    tables.emplace_back(world.fabric(rank), TableOptions{.name = "routing"});
    world.attach(rank, [&table = tables.back()] { return table.poll(); });
    if (rank < plan.routers()) routers.emplace_back(tables.back(), plan, model);
  }
  Station station(tables.back(), plan, listener);
  if (!world.run_until([&] { return station.finished(); }, kLimitNs)) {
    throw Error("the simulated routers came to a halt before they had settled");
  }
  if (!station.failure().empty()) throw Error(station.failure());
  return {station.tables()};
}

}  // namespace dunlin::routing

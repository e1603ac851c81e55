#include <deque>

#include <dunlin/fabric/sim.hpp>

#include "routing/router.hpp"
#include "routing/run.hpp"
#include "routing/station.hpp"

namespace dunlin::routing {

namespace {

constexpr std::uint64_t kLimitNs = 3'600'000'000'000;  // an hour of virtual time

}  // namespace

Finish run_on_sim(const Plan& plan, const std::string& profile, std::uint64_t seed,
                  const Listener& listener) {
  sim::World world(sim::profile(profile), plan.members(), seed);
  const ComputeModel model = compute_model(profile);
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

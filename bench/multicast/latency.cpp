#include "bench/fabric/group.hpp"
#include "bench/multicast/cast.hpp"
#include "bench/multicast/experiments.hpp"

namespace dunlin::bench {
namespace {

constexpr std::size_t kBytes = 8;
constexpr double kGoal = 3;  // bare latencies, on shared memory

struct Plans {
  Batches usual;
  Batches rare;  // one in a hundred,
  Batches rarest;
};

using BareTrip = std::function<std::optional<double>(const Batches&)>;

void play(Member& me, const Effort& effort, const Plans& plans, Cast& cast, const BareTrip& bare) {
  auto& ordered = cast.ordered();
  auto& unordered = cast.unordered();
  alternate(me, effort.rounds,
            {[&] { return bare(plans.usual); },
             [&] { return cast.one_by_one(ordered, 0, kBytes, plans.usual); },
             [&] { return cast.one_by_one(ordered, 1, kBytes, plans.usual); },
             [&] { return cast.ping_pong(ordered, kBytes, plans.usual); },
             [&] { return cast.ping_pong(unordered, kBytes, plans.usual); },
             [&] { return bare(plans.rare); },
             [&] { return cast.one_by_one(ordered, 0, kBytes, plans.rare); },
             [&] { return bare(plans.rarest); },
             [&] { return cast.one_by_one(ordered, 0, kBytes, plans.rarest); }});
}

struct Figure {
  const char* until;
  const char* mode;
  const char* which;
  std::uint32_t series;
  std::uint32_t limit;
  bool goal;
};

std::vector<Result> results_of(const Team& team, std::uint32_t members, const std::string& limit,
                               std::optional<double> goal) {
  std::vector<Result> results;
  for (const Figure& figure :
       {Figure{"the first sender's own delivery", "ordered", "median", 1, 0, true},
        Figure{"the second sender's own delivery", "ordered", "median", 2, 0, true},
        Figure{"the other's delivery", "ordered", "median", 3, 0, true},
        Figure{"the other's delivery", "unordered", "median", 4, 0, false},
        Figure{"the first sender's own delivery", "ordered", "99 %", 6, 5, false},
        Figure{"the first sender's own delivery", "ordered", "99.9 %", 8, 7, false}}) {
    results.push_back(compared({.params = {{"members", double(members)},
                                           {"mode", figure.mode},
                                           {"until", figure.until},
                                           {"of", figure.which}},
                                .unit = "ns",
                                .goal = figure.goal ? ratio_goal(goal) : std::nullopt},
                               team.series(figure.series), limit, team.series(figure.limit)));
  }
  return results;
}

Plans plans_of(const Effort& effort, const Batches& usual, std::uint32_t rare) {
  const std::uint32_t each = effort.scaled(rare);
  return {.usual = usual,
          .rare = {.batches = each, .per_batch = 1, .quantile = 0.99},
          .rarest = {.batches = each, .per_batch = 1, .quantile = 0.999}};
}

std::vector<Result> latency(const RealNetwork& network, const Effort& effort) {
  const bool shm = network.is_shm();
  const std::uint32_t members = shm ? effort.members : 2;
  // Where members share cores, each step may cost a time slice.
  const bool crowded = members > 2;
  const Batches usual = effort.plan(crowded ? 20 : 100, crowded ? 20 : network.trips_per_batch);
  const Plans plans = plans_of(effort, usual, crowded ? 400 : shm ? 20'000 : 5'000);
  const Group group(network, effort, members);
  Team team(group.team(members));
  team.run([&](Member& me) {
    auto joined = group.join(me.rank());
    const auto bare = group.bare(me, joined.get());
    if (me.rank() == 0 && !shm) me.note(group.description(*joined));
    Cast cast(me, std::move(joined), me.size());
    play(me, effort, plans, cast,
         [&](const Batches& plan) { return bare->one_way(me, plan, kBytes); });
  });
  const std::optional<double> goal = shm && !crowded ? std::optional(kGoal) : std::nullopt;
  std::vector<Result> results =
      results_of(team, members, shm ? "bare ping-pong" : network.bare_name + ", one way", goal);
  if (!shm) results.front().goal = ratio_goal(network.goals.own_delivery_ratio);
  results.front().note = team.note();
  return results;
}

}  // namespace

Experiment cast_latency(const RealNetwork& network) {
  return {.name = "latency",
          .title = "from a message of 8 bytes to its delivery, in a group that is idle but for it",
          .fabric = network.name,
          .run = on_network(network, latency)};
}

}  // namespace dunlin::bench

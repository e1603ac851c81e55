#include <algorithm>
#include <array>

#include <dunlin/progress_thread.hpp>

#include "bench/container/container_node.hpp"
#include "bench/container/experiments.hpp"

namespace dunlin::bench {
namespace {

constexpr std::array<double, 4> kComputingUs{0, 1, 10, 100};
constexpr std::uint32_t kSlots = 1U << 12;
/// The ways to call, and what polls at the holder while that computes.
struct Way {
  const char* name;
  Style style;
  bool thread;
};
constexpr std::array kWays{Way{"one_sided", Style::one_sided, false},
                           Way{"message", Style::message, false},
                           Way{"message, progress thread", Style::message, true},
                           Way{"automatic", Style::automatic, false}};
/// Of the automatic style beside the best one of the others.
constexpr double kMostRatio = 1.1;

std::vector<Result> measure(const RealNetwork& network, const Effort& effort, double computing_us) {
  const Batches plan = effort.plan(20, 10);
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    ContainerPair pair(me, group);
    BenchMap map(pair.containers(), {.name = "map", .slots = kSlots});
    pair.meet();
    pair.containers().set_costs(pair.costs(effort.quick));
    const std::vector<std::uint64_t> keys = keys_of_holder(map, kSlots / 2);
    BenchMap::Operation operation;
    std::uint64_t next = 0;
    ProgressThread progress(pair.containers());
    const auto compute = [&] { spin_for(computing_us * 1000); };
    const auto finds = [&](const Way& way) {
      return [&, way] {
        return pair.turn(
            [&] {
              return batch_ns(plan, [&] {
                operation = map.find(keys[next++ % keys.size()], Promise::both, way.style);
                demand(operation);
              });
            },
            [&] { way.thread ? progress.during(compute) : compute(); });
      };
    };
    alternate(me, effort.rounds,
              {finds(kWays[0]), finds(kWays[1]), finds(kWays[2]), finds(kWays[3])});
  });
  std::vector<Result> results;
  const auto one_sided = team.series(0);
  std::vector<double> best(one_sided.begin(), one_sided.end());
  for (const std::uint32_t series : {1U, 2U}) {
    const auto values = team.series(series);
    for (std::size_t i = 0; i < std::min(best.size(), values.size()); ++i)
      best[i] = std::min(best[i], values[i]);
  }
  for (std::uint32_t series = 0; series < kWays.size(); ++series) {
    const Way& way = kWays.at(series);
    Result& result = results.emplace_back(
        Result{.params = {{"computing us", computing_us}, {"way", way.name}}, .unit = "ns"});
    if (way.style == Style::automatic) {
      compare(result, team.series(series), "the best of the three", best);
      result.goal = Goal{.bound = kMostRatio};
    } else {
      compare(result, team.series(series), series == 0 ? "by message" : "one-sided",
              team.series(series == 0 ? 1 : 0));
    }
  }
  return results;
}

}  // namespace

Experiment attentiveness(const RealNetwork& network) {
  return {.name = "attentiveness",
          .title = "a find in the map of a member that computes between two polls",
          .fabric = network.name,
          .x = "computing us",
          .run = on_network(network, for_settings(kComputingUs, measure, 2))};
}

}  // namespace dunlin::bench

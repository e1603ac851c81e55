#include <algorithm>
#include <array>

#include "bench/container/container_node.hpp"
#include "bench/container/experiments.hpp"

namespace dunlin::bench {
namespace {

constexpr std::array<double, 4> kComputingUs{0, 1, 10, 100};
constexpr std::uint32_t kSlots = 1U << 12;
constexpr std::array kStyles{Style::one_sided, Style::message, Style::automatic};
/// Of the automatic style beside the better one of the others.
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
    auto operation = map.operation();
    std::uint64_t next = 0;
    const auto finds = [&](Style style) {
      return [&, style] {
        return pair.turn(
            [&] {
              return batch_ns(plan, [&] {
                map.find(operation, keys[next++ % keys.size()], Promise::both, style);
                demand(operation);
              });
            },
            [&] { spin_for(computing_us * 1000); });
      };
    };
    alternate(me, effort.rounds, {finds(kStyles[0]), finds(kStyles[1]), finds(kStyles[2])});
  });
  std::vector<Result> results;
  const auto one_sided = team.series(0), by_message = team.series(1);
  std::vector<double> better;
  for (std::size_t i = 0; i < std::min(one_sided.size(), by_message.size()); ++i)
    better.push_back(std::min(one_sided[i], by_message[i]));
  for (std::uint32_t series = 0; series < kStyles.size(); ++series) {
    Result result{.name = "attentiveness",
                  .params = {{"computing us", computing_us},
                             {"style", std::string(name_of(kStyles.at(series)))}},
                  .unit = "ns"};
    if (kStyles.at(series) == Style::automatic) {
      compare(result, team.series(series), "the better of the two", better);
      result.goal = Goal{.on = Goal::On::ratio, .bound = kMostRatio};
    } else {
      compare(result, team.series(series), series == 0 ? "by message" : "one-sided",
              team.series(1 - series));
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace

Experiment attentiveness(const RealNetwork& network) {
  return {.name = "attentiveness",
          .title = "a find in the map of a member that computes between two polls",
          .fabric = network.name,
          .x = "computing us",
          .run = [&network](const Effort& effort) {
            std::vector<Result> results;
            for (const double us : std::span(kComputingUs).first(effort.quick ? 2 : 4))
              for (Result& result : measure(network, effort, us))
                results.push_back(std::move(result));
            return results;
          }};
}

}  // namespace dunlin::bench

#include <array>

#include "bench/container/container_node.hpp"
#include "bench/container/experiments.hpp"

namespace dunlin::bench {
namespace {

constexpr std::array<double, 4> kComputingUs{0, 1, 10, 100};
constexpr std::uint32_t kSlots = 1U << 12;

std::vector<Result> measure(const RealNetwork& network, const Effort& effort, double computing_us) {
  const Batches plan = effort.plan(20, 10);
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    ContainerPair pair(me, group);
    BenchMap map(pair.containers(), {.name = "map", .slots = kSlots});
    pair.meet();
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
    alternate(me, effort.rounds, {finds(Style::one_sided), finds(Style::message)});
  });
  std::vector<Result> results;
  for (const std::uint32_t series : {0U, 1U}) {
    Result result{.name = "attentiveness",
                  .params = {{"computing us", computing_us},
                             {"style", std::string(name_of(series == 0 ? Style::one_sided
                                                                       : Style::message))}},
                  .unit = "ns"};
    compare(result, team.series(series), series == 0 ? "by message" : "one-sided",
            team.series(1 - series));
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

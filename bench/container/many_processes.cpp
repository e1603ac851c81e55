#include <algorithm>
#include <array>

#include "bench/container/container_node.hpp"
#include "bench/container/experiments.hpp"
#include "team/cores.hpp"

namespace dunlin::bench {
namespace {

constexpr std::array<std::uint32_t, 5> kProcesses{1, 2, 4, 8, 16};
constexpr std::uint32_t kSlots = 1U << 16;
constexpr std::uint32_t kCalls = 200'000;  // of all processes in a round
constexpr double kLeastRatio = 0.5;        // of the rate of two processes

/// A round after one that does not count: an insert, and a find of another's key, in turns.
double calls_per_s(const Effort& effort, std::uint32_t processes) {
  const RealNetwork& network = real_network("shm");
  const Group group(network, effort, processes);
  const std::uint32_t calls = std::max(effort.scaled(kCalls) / processes, 10U);
  Team team({.processes = processes, .timeout = effort.timeout});
  team.run([&](Member& me) {
    ContainerNode here(group.join(me.rank()));
    connect(me, here.node);
    BenchMap map(here.containers, {.name = "map", .slots = kSlots, .style = Style::one_sided});
    me.meet([&] { here.poll(); });
    std::uint64_t key = me.rank();
    BenchMap::Operation operation;
    alternate(me, 1, {[&]() -> std::optional<double> {
                me.meet([&] { here.poll(); });
                const double start = now_ns();
                for (std::uint32_t i = 0; i < calls; i += 2, key += me.size()) {
                  operation = map.insert(key % (kSlots / 2), i);
                  demand(operation);
                  operation = map.find((key * 31 + 1) % (kSlots / 2));
                  demand(operation);
                }
                me.meet([&] { here.poll(); });
                const double rate = 1e9 * calls * me.size() / (now_ns() - start);
                return me.rank() == 0 ? std::optional(rate) : std::nullopt;
              }});
  });
  return team.series(0).front();
}

std::vector<Result> measure(const Effort& effort) {
  const auto sizes = std::span(kProcesses).first(effort.quick ? 3 : kProcesses.size());
  std::vector<std::vector<double>> rates(sizes.size());
  for (std::uint32_t round = 0; round < effort.rounds; ++round)
    for (std::size_t i = 0; i < sizes.size(); ++i)
      rates[i].push_back(calls_per_s(effort, sizes[i]));
  std::vector<Result> results;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Result& result = results.emplace_back(Result{
        .params = {{"processes", double(sizes[i])}, {"cores", double(app::usable_cores().size())}},
        .unit = "1/s",
        .value = summarize(rates[i])});
    if (sizes[i] <= 2) continue;
    compare(result, rates[i], "two processes", rates[1]);
    result.goal = Goal{.bound = kLeastRatio};
  }
  return results;
}

}  // namespace

Experiment many_processes() {
  return {.name = "processes",
          .title = "inserts and finds of all processes together, in one map",
          .fabric = "shm",
          .x = "processes",
          .run = measure};
}

}  // namespace dunlin::bench

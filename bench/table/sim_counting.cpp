#include <map>

#include "bench/table/cluster.hpp"
#include "bench/table/experiments.hpp"
#include "bench/table/raw_cluster.hpp"

namespace dunlin::bench {
namespace {

constexpr double kMillion = 1e6;
constexpr std::uint64_t kRounds = 2'000;  // simulated by all nodes together

/// Published seconds to count to a million, by nodes; throughputs are given for 3 and 28 nodes.
using Published = std::map<std::uint32_t, double>;

/// Seconds to a million, from fewer rounds: the time is linear in them, as each repeats the last.
Result count(const Effort& effort, const Network& network, Refresh refresh, std::uint32_t nodes,
             const Published& published) {
  const std::uint64_t rounds = (effort.quick ? kRounds / 20 : kRounds) / nodes;
  const auto table = over_seeds(effort, [&](std::uint64_t seed) {
    return kMillion / counting_rate(network.profile, seed, nodes, refresh, rounds);
  });
  const auto raw = over_seeds(effort, [&](std::uint64_t seed) {
    return kMillion / RawCluster(network.profile, nodes, seed, refresh).counting_rate(rounds);
  });
  const auto known = published.find(nodes);
  return compared(
      {.params = {{"refresh", refresh_name(refresh)}, {"nodes", double(nodes)}},
       .unit = "s",
       .published = known == published.end() ? std::nullopt : network.published(known->second),
       .note = "Seconds to a million, in proportion from " + std::to_string(kRounds) +
               " / nodes rounds, of which one is like the other."},
      table, "raw in the simulator", raw);
}

/// What is measured on one network, and what is published of it.
struct Setting {
  const char* network;
  std::vector<std::uint32_t> sizes;
  Published writes, reads;
};

std::vector<Result> count_on(const Effort& effort, const Setting& setting) {
  const Network network(effort, setting.network);
  std::vector<Result> results;
  for (const Refresh refresh : kBothWays)
    for (const std::uint32_t nodes : setting.sizes)
      results.push_back(count(effort, network, refresh, nodes,
                              refresh == Refresh::writes ? setting.writes : setting.reads));
  return results;
}

Experiment experiment(const char* name, const char* title, const Setting& setting) {
  return {.name = name,
          .title = title,
          .fabric = "sim",
          .x = "nodes",
          .run = for_settings({setting}, count_on)};
}

}  // namespace

Experiment simulated_counting() {
  return experiment(
      "counting", "seconds to count to a million in step, by nodes",
      {.network = kPublishedNetwork,
       .sizes = {2, 3, 4, 8, 12, 16, 20, 24, 28},
       .writes = {{2, 3.23}, {3, kMillion / 325e3}, {8, 7.09}, {16, 13.42}, {28, kMillion / 48e3}},
       .reads = {{3, kMillion / 400e3}, {28, kMillion / 40e3}}});
}

Experiment simulated_racks() {
  return experiment(
      "racks", "counting across racks: twice the latency, 80 % of the bandwidth between them",
      {.network = "two-racks", .sizes = {8, 16}, .writes = {{8, 8.66}, {16, 13.16}}, .reads = {}});
}

Experiment simulated_gigabit() {
  return experiment("gigabit", "counting on the 1 Gb/s network: reads collapse, writes stay linear",
                    {.network = "ib1-2015", .sizes = {2, 4, 8, 12, 16}, .writes = {}, .reads = {}});
}

}  // namespace dunlin::bench

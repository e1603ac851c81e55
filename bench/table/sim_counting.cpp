#include <map>

#include "bench/table/cluster.hpp"
#include "bench/table/experiments.hpp"
#include "bench/table/simulation.hpp"

namespace dunlin::bench {
namespace {

constexpr double kMillion = 1e6;
constexpr std::uint64_t kRounds = 2'000;  // simulated by all nodes together

/// Published seconds to count to a million, by nodes; throughputs are given for 3 and 28 nodes.
using Published = std::map<std::uint32_t, double>;

struct Count {
  std::string name;
  RawMode mode;
  std::uint32_t nodes;
  std::optional<double> published_s;
};

/// Seconds to a million, from fewer rounds: the time is linear in them, as each repeats the last.
Result count(const Effort& effort, const sim::Profile& profile, const Count& c) {
  const Refresh refresh = c.mode == RawMode::writes ? Refresh::writes : Refresh::reads;
  const std::uint64_t rounds = (effort.quick ? kRounds / 20 : kRounds) / c.nodes;
  const auto table = over_seeds(effort, [&](std::uint64_t seed) {
    return kMillion / counting_rate(profile, seed, c.nodes, refresh, rounds);
  });
  const auto raw = over_seeds(effort, [&](std::uint64_t seed) {
    return kMillion / RawCluster(profile, c.nodes, seed, c.mode).counting_rate(rounds);
  });
  Result result{.name = c.name,
                .params = {{"refresh", mode_name(c.mode)}, {"nodes", double(c.nodes)}},
                .unit = "s",
                .published = c.published_s,
                .note = "Seconds to a million, in proportion from " + std::to_string(kRounds) +
                        " / nodes rounds, of which one is like the other."};
  compare(result, table, "raw in the simulator", raw);
  return result;
}

std::vector<Result> count_all(const Effort& effort, const Network& network, const std::string& name,
                              RawMode mode, const std::vector<std::uint32_t>& sizes,
                              const Published& published) {
  std::vector<Result> results;
  for (const std::uint32_t nodes : sizes) {
    const auto known = published.find(nodes);
    results.push_back(
        count(effort, network.profile,
              {.name = name,
               .mode = mode,
               .nodes = nodes,
               .published_s =
                   known == published.end() ? std::nullopt : network.published(known->second)}));
  }
  return results;
}

std::vector<Result> both_modes(const Effort& effort, const Network& network,
                               const std::string& name, const std::vector<std::uint32_t>& sizes,
                               const Published& writes, const Published& reads) {
  std::vector<Result> results = count_all(effort, network, name, RawMode::writes, sizes, writes);
  for (Result& r : count_all(effort, network, name, RawMode::reads, sizes, reads)) {
    results.push_back(std::move(r));
  }
  return results;
}

}  // namespace

Experiment simulated_counting() {
  return {.name = "counting",
          .title = "seconds to count to a million in step, by nodes",
          .fabric = "sim",
          .x = "nodes",
          .run = [](const Effort& effort) {
            const Network network(effort, kPublishedNetwork);
            const Published writes{
                {2, 3.23}, {3, kMillion / 325e3}, {8, 7.09}, {16, 13.42}, {28, kMillion / 48e3}};
            const Published reads{{3, kMillion / 400e3}, {28, kMillion / 40e3}};
            return both_modes(effort, network, "counting", {2, 3, 4, 8, 12, 16, 20, 24, 28}, writes,
                              reads);
          }};
}

Experiment simulated_racks() {
  return {.name = "racks",
          .title = "counting across racks: twice the latency, 80 % of the bandwidth between them",
          .fabric = "sim",
          .x = "nodes",
          .run = [](const Effort& effort) {
            const Network network(effort, "two-racks");
            return both_modes(effort, network, "racks", {8, 16}, {{8, 8.66}, {16, 13.16}}, {});
          }};
}

Experiment simulated_gigabit() {
  return {.name = "gigabit",
          .title = "counting on the 1 Gb/s network: reads collapse, writes stay linear",
          .fabric = "sim",
          .x = "nodes",
          .run = [](const Effort& effort) {
            const Network network(effort, "ib1-2015");
            return both_modes(effort, network, "gigabit", {2, 4, 8, 12, 16}, {}, {});
          }};
}

}  // namespace dunlin::bench

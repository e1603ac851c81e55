#include "bench/table/cluster.hpp"
#include "bench/table/experiments.hpp"
#include "bench/table/simulation.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kConjunctionNodes = 25;

struct Case {
  Refresh refresh;
  RawMode raw;
  double published_ns;
  double published_raw_ns;
  double published_conjunction_ns;
};
constexpr std::array<Case, 2> kCases{Case{Refresh::writes, RawMode::writes, 4'500, 5'810, 11'600},
                                     Case{Refresh::reads, RawMode::reads, 2'220, 4'600, 12'040}};

/// The simplest predicate through the table, and by bare operations, each beside its published
/// value.
std::vector<Result> detect(const Effort& effort) {
  const Network network(effort, kPublishedNetwork);
  const std::uint32_t times = effort.quick ? 5 : 100;
  std::vector<Result> results;
  for (const Case& c : kCases) {
    const auto raw = over_seeds(effort, [&](std::uint64_t seed) {
      return RawCluster(network.profile, 2, seed, c.raw).detection(times);
    });
    const auto table = over_seeds(effort, [&](std::uint64_t seed) {
      return simple_detection(network.profile, seed, 2, c.refresh, times);
    });
    const std::string mode = mode_name(c.raw);
    results.push_back({.name = "detection",
                       .params = {{"refresh", mode}, {"by", "table"}},
                       .unit = "ns",
                       .published = network.published(c.published_ns),
                       .note =
                           "The published table is faster than the published raw operations, "
                           "which it is made of; the profile is derived from the latter, so "
                           "the simulated table cannot be below them (docs/benchmarks/table.md)."});
    compare(results.back(), table, "raw in the simulator", raw);
    results.push_back({.name = "detection",
                       .params = {{"refresh", mode}, {"by", "raw operations"}},
                       .unit = "ns",
                       .published = network.published(c.published_raw_ns)});
    results.back().value = summarize(raw);
  }
  return results;
}

std::vector<Result> detect_conjunction(const Effort& effort) {
  const Network network(effort, kPublishedNetwork);
  const std::uint32_t times = effort.quick ? 3 : 30;
  std::vector<std::uint32_t> others;
  for (std::uint32_t row = 1; row < kConjunctionNodes; ++row) others.push_back(row);
  std::vector<Result> results;
  for (const Case& c : kCases) {
    const auto simple = over_seeds(effort, [&](std::uint64_t seed) {
      return simple_detection(network.profile, seed, kConjunctionNodes, c.refresh, times);
    });
    auto conjunction = over_seeds(effort, [&](std::uint64_t seed) {
      return mean_round_trip<1>(network.profile, seed,
                                {.nodes = kConjunctionNodes,
                                 .watched = others,
                                 .answering = others,
                                 .refresh = c.refresh,
                                 .times = times});
    });
    for (std::size_t i = 0; i < simple.size(); ++i) conjunction[i] -= simple[i];
    results.push_back({.name = "conjunction",
                       .params = {{"refresh", mode_name(c.raw)}},
                       .unit = "ns",
                       .published = network.published(c.published_conjunction_ns)});
    compare(results.back(), conjunction, "its simplest predicate", simple);
  }
  return results;
}

}  // namespace

Experiment simulated_detection() {
  return {.name = "detection",
          .title = "the simplest predicate, half a round trip in virtual time",
          .fabric = "sim",
          .run = detect};
}

Experiment simulated_conjunction() {
  return {.name = "conjunction",
          .title = "all of the other 24 rows of 25, the round trip less the simplest predicate",
          .fabric = "sim",
          .run = detect_conjunction};
}

}  // namespace dunlin::bench

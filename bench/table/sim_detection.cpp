#include "bench/table/cluster.hpp"
#include "bench/table/experiments.hpp"
#include "bench/table/nodes.hpp"
#include "bench/table/raw_cluster.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kConjunctionNodes = 25;

struct Case {
  Refresh refresh;
  double published_ns;
  double published_raw_ns;
  double published_conjunction_ns;
};
constexpr std::array<Case, 2> kCases{Case{Refresh::writes, 4'500, 5'810, 11'600},
                                     Case{Refresh::reads, 2'220, 4'600, 12'040}};

/// The simplest predicate through the table, and by bare operations, each beside its published
/// value.
std::vector<Result> detect(const Effort& effort) {
  const Network network(effort, kPublishedNetwork);
  const std::uint32_t times = effort.quick ? 5 : 100;
  std::vector<Result> results;
  for (const Case& c : kCases) {
    const auto raw = over_seeds(effort, [&](std::uint64_t seed) {
      return RawCluster(network.profile, 2, seed, c.refresh).detection(times);
    });
    const auto table = over_seeds(effort, [&](std::uint64_t seed) {
      return simple_detection(network.profile, seed, 2, c.refresh, times);
    });
    const std::string mode = refresh_name(c.refresh);
    results.push_back(
        compared({.params = {{"refresh", mode}, {"by", "table"}},
                  .unit = "ns",
                  .published = network.published(c.published_ns),
                  .note = "The published table is faster than the published raw operations, "
                          "which it is made of; the profile is derived from the latter, so "
                          "the simulated table cannot be below them (docs/benchmarks/table.md)."},
                 table, "raw in the simulator", raw));
    results.push_back({.params = {{"refresh", mode}, {"by", "raw operations"}},
                       .unit = "ns",
                       .value = summarize(raw),
                       .published = network.published(c.published_raw_ns)});
  }
  return results;
}

std::vector<Result> detect_conjunction(const Effort& effort) {
  const Network network(effort, kPublishedNetwork);
  const std::vector<std::uint32_t> others = rows_to(kConjunctionNodes - 1);
  std::vector<Result> results;
  for (const Case& c : kCases) {
    results.push_back(beyond_the_simplest<1>(effort, network,
                                             {{"refresh", refresh_name(c.refresh)}},
                                             {.nodes = kConjunctionNodes,
                                              .watched = others,
                                              .answering = others,
                                              .refresh = c.refresh,
                                              .times = effort.quick ? 3U : 30U}));
    results.back().published = network.published(c.published_conjunction_ns);
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

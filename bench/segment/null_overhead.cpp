#include <algorithm>
#include <array>
#include <span>

#include "bench/segment/bare_segment.hpp"
#include "bench/segment/experiments.hpp"
#include "bench/segment/segment_node.hpp"

namespace dunlin::bench {
namespace {

constexpr std::array<std::size_t, 3> kSizes{8, 1024, 65'536};
constexpr double kMostNs = 10;  // on shared memory; elsewhere nothing that can be measured
/// Table 2 of DDSS: what its direct scheme takes more than the network.
constexpr double kPublishedNs = 350;

/// What the space adds, round by round; noise may make it less than nothing, which counts as 0.
Result added(const RealNetwork& network, const char* operation, std::size_t bytes,
             std::span<const double> with, std::span<const double> without) {
  std::vector<double> differences(with.size());
  std::ranges::transform(with, without, differences.begin(),
                         [](double a, double b) { return std::max(a - b, 0.0); });
  Result result{.params = {{"operation", operation}, {"bytes", double(bytes)}, {"figure", "added"}},
                .unit = "ns"};
  if (differences.empty()) return result;
  result.value = summarize(differences);
  if (bytes == 8) result.published = kPublishedNs;
  if (network.passive_target && bytes == 8)
    result.goal = Goal{.on = Goal::On::value, .bound = kMostNs};
  return result;
}

std::vector<Result> overhead(const RealNetwork& network, const Effort& effort, std::size_t bytes) {
  const Batches plan = effort.plan(100, network.trips(bytes <= 1024 ? 1 : 10));
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    SegmentPair pair(me, group);
    const Key key = pair.make({.bytes = bytes, .coherence = Coherence::null});
    BareSegment bare(pair.node(), bytes);
    std::vector<std::uint64_t> words(bytes / 8);
    const auto memory = std::as_writable_bytes(std::span(words));
    const auto get = [&] {
      auto operation = pair.space().get(key, memory);
      demand(operation);
    };
    const auto put = [&] {
      auto operation = pair.space().put(key, memory);
      demand(operation);
    };
    alternate(me, effort.rounds,
              {timed(pair, plan, [&] { bare.read_data(); }), timed(pair, plan, get),
               timed(pair, plan, [&] { bare.write_data(); }), timed(pair, plan, put)});
  });
  std::vector<Result> results;
  for (const std::uint32_t series : {1U, 3U}) {
    const char* const operation = series == 1 ? "get" : "put";
    results.push_back(compared(
        {.params = {{"operation", operation}, {"bytes", double(bytes)}, {"figure", "whole"}},
         .unit = "ns"},
        team.series(series), "the fabric's own operation", team.series(series - 1)));
    results.push_back(
        added(network, operation, bytes, team.series(series), team.series(series - 1)));
  }
  return results;
}

}  // namespace

Experiment null_overhead(const RealNetwork& network) {
  return {
      .name = "overhead",
      .title =
          "get and put under null coherence, and what they add to the fabric's operation (table 2)",
      .fabric = network.name,
      .x = "bytes",
      .run = on_network(network, for_settings(kSizes, overhead, 1))};
}

}  // namespace dunlin::bench

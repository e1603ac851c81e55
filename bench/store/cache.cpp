#include <array>
#include <vector>

#include "bench/store/experiments.hpp"
#include "bench/store/keys.hpp"
#include "bench/store/many_pairs.hpp"

namespace dunlin::bench {
namespace {

/// A client with each.
constexpr std::array<std::size_t, 5> kCachesMb{0, 5, 20, 80, 320};
constexpr auto kClients = static_cast<std::uint32_t>(kCachesMb.size());
static_assert(kClients * kRatesSeries <= kMaxSeries);
constexpr std::size_t kBytesOfLocation = 16;
constexpr std::size_t kCallsOfRound = 500'000;

/// One get of each key where there is room for all locations, else three for each location. First,
/// some gets of all keys, so that later ones find the home's memory mapped.
void fill_cache(ManyPairs& here, const Effort& effort, std::size_t cache_mb,
                const NextNumber& next) {
  const std::size_t locations = of_many(effort, cache_mb << 20) / kBytesOfLocation;
  const std::uint32_t pairs = many_pairs(effort);
  const std::size_t calls = of_many(effort, 2 * kCallsOfRound);
  static_cast<void>(here.measure(uniform_numbers(pairs, cache_mb), 0, calls, 0));
  std::uint32_t number = 0;
  if (locations >= pairs)
    static_cast<void>(here.measure([&] { return number++ % pairs; }, 0, pairs, 0));
  else if (locations > 0)
    static_cast<void>(here.measure(next, 0, 3 * locations, 0));
}

void measure(Member& me, const Group& group, const Effort& effort, const NextNumber& next) {
  const bool is_home = me.rank() < ManyPairs::kFirstClient;
  const std::size_t cache_mb = is_home ? 0 : kCachesMb.at(me.rank() - ManyPairs::kFirstClient);
  ManyPairs here(me, group, effort, cache_mb);
  if (!is_home) fill_cache(here, effort, cache_mb, next);
  const std::size_t calls = of_many(effort, kCallsOfRound);
  for (std::uint32_t round = 0; round < effort.rounds; ++round)
    for (std::uint32_t i = 0; i < kClients; ++i)
      here.alone(ManyPairs::kFirstClient + i,
                 [&] { record(me, i * kRatesSeries, here.measure(next, calls, calls, round)); });
}

void measure_skew(std::vector<Result>& results, const Effort& effort, double skew,
                  const std::function<NextNumber(Rank)>& numbers_of) {
  const Group group(real_network("shm"), effort, ManyPairs::kFirstClient + kClients);
  Team team(ManyPairs::team(group, effort));
  team.run([&](Member& me) { measure(me, group, effort, numbers_of(me.rank())); });
  for (std::uint32_t i = 0; i < kClients; ++i)
    add_results(results,
                {{"skew", skew},
                 {"cache MB", static_cast<double>(of_many(effort, kCachesMb[i] * 1000)) / 1000},
                 {"pairs", double(many_pairs(effort))}},
                team, i * kRatesSeries);
}

std::vector<Result> measure_all(const Effort& effort) {
  std::vector<Result> results;
  SkewedNumbers zipf(many_pairs(effort), kManySkew, 0);  // its tables are shared by all processes
  measure_skew(results, effort, kManySkew, [&](Rank rank) {
    zipf.reseed(rank);
    return [&] { return zipf.next(); };
  });
  measure_skew(results, effort, 0,
               [&](Rank rank) { return uniform_numbers(many_pairs(effort), rank); });
  return results;
}

}  // namespace

Experiment store_cache() {
  return {.name = "cache",
          .title =
              "Gets of 20 million pairs of 64 bytes, 32 at once, by the size of the location "
              "cache (takes 7 GB of memory)",
          .fabric = "shm",
          .x = "cache MB",
          .only_by_name = true,
          .run = measure_all};
}

}  // namespace dunlin::bench

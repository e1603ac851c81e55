#include <algorithm>
#include <optional>
#include <vector>

#include "bench/store/experiments.hpp"
#include "bench/store/keys.hpp"
#include "bench/store/many_pairs.hpp"

namespace dunlin::bench {
namespace {

constexpr std::size_t kCacheMb = 20;
constexpr std::uint32_t kClients = 8;
constexpr std::uint32_t kFewClients = 2;
constexpr std::size_t kCallsOfRound = 1'000'000;
constexpr double kPublishedReads = 0.178;

// The series of what is measured.
constexpr std::uint32_t kFromEmpty = 0, kFilled = kRatesSeries, kTogether = 2 * kRatesSeries,
                        kUniform = 3 * kRatesSeries;

void measure(Member& me, const Group& group, const Effort& effort, SkewedNumbers& zipf) {
  zipf.reseed(me.rank());
  const NextNumber next = [&zipf] { return zipf.next(); };
  const std::uint32_t pairs = many_pairs(effort);
  const std::size_t calls = of_many(effort, kCallsOfRound);
  ManyPairs here(me, group, effort, kCacheMb);
  const auto alone = [&](Rank client, const NextNumber& numbers, std::size_t gets,
                         std::uint32_t round, std::optional<std::uint32_t> series) {
    here.alone(client, [&] {
      const GetRates rates = here.measure(numbers, calls, gets, round);
      if (series) record(me, *series, rates);
    });
  };
  // Each client can begin with an empty cache once.
  const std::uint32_t first_runs = std::min(effort.rounds, me.size() - ManyPairs::kFirstClient);
  for (std::uint32_t round = 0; round < first_runs; ++round)
    alone(ManyPairs::kFirstClient + round, next, pairs, round, kFromEmpty);
  for (std::uint32_t round = 0; round < effort.rounds; ++round)
    alone(ManyPairs::kFirstClient, next, calls, round, kFilled);
  for (std::uint32_t round = 0; round <= effort.rounds; ++round) {
    const GetRates rates = here.measure_together(next, calls, round);
    if (me.rank() == ManyPairs::kFirstClient && round > 0) record(me, kTogether, rates);
  }
  const NextNumber uniform = uniform_numbers(pairs, me.rank());
  alone(ManyPairs::kFirstClient, uniform, 3 * calls, 0, std::nullopt);
  for (std::uint32_t round = 0; round < effort.rounds; ++round)
    alone(ManyPairs::kFirstClient, uniform, calls, round, kUniform);
}

std::vector<Result> measure_all(const Effort& effort) {
  const std::uint32_t clients = effort.quick ? kFewClients : kClients;
  const Group group(real_network("shm"), effort, ManyPairs::kFirstClient + clients);
  SkewedNumbers zipf(many_pairs(effort), kManySkew, 0);  // its tables are shared by all processes
  Team team(ManyPairs::team(group, effort));
  team.run([&](Member& me) { measure(me, group, effort, zipf); });
  std::vector<Result> results;
  const auto add = [&](double skew, std::uint32_t at_once, const char* cache,
                       std::uint32_t series) {
    add_results(results,
                {{"skew", skew},
                 {"clients", double(at_once)},
                 {"cache of 20 MB", cache},
                 {"pairs", double(many_pairs(effort))}},
                team, series);
  };
  add(kManySkew, 1, "empty at first", kFromEmpty);
  results.back().published = kPublishedReads;
  results.back().goal = Goal{.on = Goal::On::value, .bound = kPublishedReads};
  add(kManySkew, 1, "filled", kFilled);
  add(kManySkew, clients, "filled, of each", kTogether);
  add(0, 1, "filled", kUniform);
  return results;
}

}  // namespace

Experiment store_twenty_million() {
  return {.name = "twenty million",
          .title =
              "Gets of 20 million pairs of 64 bytes, 32 at once, by clients with location "
              "caches of 20 MB (takes 7 GB of memory)",
          .fabric = "shm",
          .only_by_name = true,
          .run = measure_all};
}

}  // namespace dunlin::bench

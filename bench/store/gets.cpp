#include <array>
#include <vector>

#include "bench/store/experiments.hpp"
#include "bench/store/keys.hpp"
#include "bench/store/store_pair.hpp"

namespace dunlin::bench {
namespace {

constexpr std::size_t kGetsAtOnce = StorePair::kAtOnce;
constexpr std::uint32_t kPairs = 100'000;
constexpr std::size_t kPairBytes = 64;
constexpr std::size_t kEntryBytes = 128;  // head, key and value, on whole lines

struct Caching {
  std::string name;
  std::size_t cache_bytes;
  double least_ratio;
};
/// Without a cache a get is two reads, one after the other: beside one read of the same bytes.
const std::array kCachings{Caching{"all", std::size_t{8} << 20, 0.95}, Caching{"none", 0, 0.4}};

/// Member 0 gets keys that member 1 holds; beside it, member 0 reads as many bytes from as many
/// random places of a region of member 1's.
Result measure_gets(const RealNetwork& network, const Effort& effort, const Caching& caching) {
  const std::uint32_t pairs = effort.scaled(kPairs);
  const Batches plan = effort.plan(100, std::max(network.trips_per_batch / 16, 2U));
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    StorePair pair(me, group,
                   {.memory_bytes = store_bytes(pairs, kPairBytes),
                    .large_bytes = 0,
                    .expected_keys = pairs,
                    .cache_bytes = caching.cache_bytes},
                   std::size_t{pairs} * kEntryBytes);
    const std::vector<std::uint64_t> keys = keys_of(pair.store(), 1, pairs);
    if (me.rank() == 0) pair.load(keys, std::array<std::byte, kPairBytes>{});
    me.meet([&] { pair.poll(); });

    SkewedNumbers numbers(pairs, 0, 7);
    std::vector<std::uint64_t> memory(kGetsAtOnce * kEntryBytes / sizeof(std::uint64_t));
    Completion done;
    std::array<Operation, kGetsAtOnce> batch;
    const auto bare = [&] {
      for (std::size_t i = 0; i < kGetsAtOnce; ++i)
        batch[i] = read(1, pair.places(), std::uint64_t{numbers.next()} * kEntryBytes,
                        &memory[i * kEntryBytes / sizeof(std::uint64_t)], kEntryBytes)
                       .notify(done);
      pair.node().post(batch);
      while (!done.finished()) pair.poll();
    };
    StoreBatch together(pair.store());
    const auto gets = [&] {
      together.clear();
      for (std::size_t i = 0; i < kGetsAtOnce; ++i) together.get(keys[numbers.next()]);
      while (!together.finished()) pair.poll();
      StorePair::demand(together.wait());
    };
    const auto rate = [&](const auto& measured) {
      return pair.turn([&] { return 1e9 / (batch_ns(plan, measured) / kGetsAtOnce); });
    };
    alternate(me, effort.rounds, {[&] { return rate(bare); }, [&] { return rate(gets); }});
    pair.node().fabric().abandon(done);
  });
  Result result{.name = "gets",
                .params = {{"cached locations", caching.name},
                           {"pairs", double(pairs)},
                           {"at once", double(kGetsAtOnce)}},
                .unit = "1/s",
                .better = Better::higher};
  compare(result, team.series(1), "bare random reads of the same bytes", team.series(0));
  result.goal = Goal{.on = Goal::On::ratio, .bound = caching.least_ratio};
  return result;
}

}  // namespace

Experiment store_gets(const RealNetwork& network) {
  return {.name = "gets",
          .title = "Gets of 64-byte values, 32 at once, uniform",
          .fabric = network.name,
          .run = [&network](const Effort& effort) {
            std::vector<Result> results;
            for (const Caching& caching : kCachings)
              results.push_back(measure_gets(network, effort, caching));
            return results;
          }};
}

}  // namespace dunlin::bench

#include "bench/store/gets.hpp"

#include <array>
#include <vector>

#include "bench/store/experiments.hpp"
#include "bench/store/get_batches.hpp"
#include "bench/store/keys.hpp"
#include "bench/store/store_pair.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kPairs = 100'000;
constexpr std::size_t kPairBytes = 64;

struct Caching {
  std::string name;
  std::size_t cache_bytes;
  double least_ratio;
};
/// Without a cache a get is two reads, one after the other: beside one read of the same bytes.
const std::array kCachings{Caching{"all", std::size_t{8} << 20, 0.95}, Caching{"none", 0, 0.4}};

Result gets_of(const RealNetwork& network, const Effort& effort, const Caching& caching) {
  const std::uint32_t pairs = effort.scaled(kPairs);
  Result result{.name = "gets",
                .params = {{"cached locations", caching.name},
                           {"pairs", double(pairs)},
                           {"at once", double(GetBatches::kAtOnce)}},
                .unit = "1/s",
                .better = Better::higher,
                .goal = Goal{.on = Goal::On::ratio, .bound = caching.least_ratio}};
  measure_gets(result, network, effort,
               {.pairs = pairs, .value_bytes = kPairBytes, .cache_bytes = caching.cache_bytes});
  return result;
}

}  // namespace

void measure_gets(Result& result, const RealNetwork& network, const Effort& effort,
                  const GetSetting& setting) {
  const std::uint32_t pairs = setting.pairs;
  const Batches plan = effort.plan(100, std::max(network.trips_per_batch / 16, 2U));
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    StorePair pair(me, group,
                   {.memory_bytes = store_bytes(pairs, setting.value_bytes),
                    .large_bytes = 0,
                    .expected_keys = pairs,
                    .cache_bytes = setting.cache_bytes},
                   pairs * bytes_of_entry(setting.value_bytes));
    const std::vector<std::uint64_t> keys = keys_of(pair.store(), 1, pairs);
    if (me.rank() == 0) pair.load(keys, std::vector<std::byte>(setting.value_bytes));
    me.meet([&] { pair.poll(); });

    SkewedNumbers numbers(pairs, 0, 7);
    GetBatches batches(pair.node(), pair.store(), 1, pair.places(), setting.value_bytes);
    // The home answers meanwhile.
    static_cast<void>(pair.turn([&] {
      batches.touch_places(pairs);
      return 0.0;
    }));
    const auto rate = [&](const auto& batch) {
      return pair.turn([&] { return 1e9 * GetBatches::kAtOnce / batch_ns(plan, batch); });
    };
    const auto reads = [&] { batches.make_reads([&] { return numbers.next(); }); };
    const auto gets = [&] { batches.make_gets([&] { return keys[numbers.next()]; }); };
    alternate(me, effort.rounds, {[&] { return rate(reads); }, [&] { return rate(gets); }});
  });
  compare(result, team.series(1), "bare random reads of the same bytes", team.series(0));
}

Experiment store_gets(const RealNetwork& network) {
  return {.name = "gets",
          .title = "Gets of 64-byte values, 32 at once, uniform",
          .fabric = network.name,
          .run = [&network](const Effort& effort) {
            std::vector<Result> results;
            for (const Caching& caching : kCachings)
              results.push_back(gets_of(network, effort, caching));
            return results;
          }};
}

}  // namespace dunlin::bench

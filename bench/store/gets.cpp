#include <algorithm>
#include <array>
#include <vector>

#include "bench/store/experiments.hpp"
#include "bench/store/get_batches.hpp"
#include "bench/store/keys.hpp"
#include "bench/store/store_pair.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kPairs = 100'000;  // at most
constexpr std::size_t kPairBytes = 64;
constexpr std::size_t kDrawn = std::size_t{1} << 20;
constexpr std::size_t kRoomForAll = std::size_t{8} << 20;  // locations
/// The longer a value, the less the computing for each get counts.
[[nodiscard]] constexpr double least_ratio_cached(std::size_t value_bytes) {
  return value_bytes <= 64 ? 0.8 : value_bytes <= 1024 ? 0.9 : 0.95;
}

struct Caching {
  std::string name;
  std::size_t cache_bytes;
  double least_ratio;
};
/// Without a cache a get is two reads, one after the other: beside one read of the same bytes.
const std::array kCachings{Caching{"all", kRoomForAll, least_ratio_cached(kPairBytes)},
                           Caching{"none", 0, 0.4}};

constexpr std::array<std::size_t, 6> kSizes{16, 64, 256, 1024, 4096, 8192};
constexpr std::size_t kMostBytes = std::size_t{128} << 20;  // of all entries

struct GetSetting {
  std::uint32_t pairs = 0;
  std::size_t value_bytes = 0;
  std::size_t cache_bytes = 0;
};

/// Member 0 gets keys that member 1 holds, in batches, with equal probability. Beside it, member 0
/// reads as many bytes from as many random places of a region of member 1's.
Result measure_gets(Result result, const RealNetwork& network, const Effort& effort,
                    const GetSetting& setting) {
  const std::uint32_t pairs = setting.pairs;
  const Batches plan = effort.plan(100, network.trips(16));
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

    // Drawn before, as a draw takes longer than a read.
    std::vector<std::uint32_t> numbers(kDrawn);
    std::vector<std::uint64_t> drawn_keys(kDrawn);
    SkewedNumbers draw(pairs, 0, 7);
    for (std::size_t i = 0; i < kDrawn; ++i) drawn_keys[i] = keys[numbers[i] = draw.next()];
    std::size_t drawn = 0;
    GetBatches batches(pair.node(), pair.store(), 1, pair.places(), setting.value_bytes);
    // The home answers meanwhile.
    static_cast<void>(pair.turn([&] {
      batches.touch_places(pairs);
      return 0.0;
    }));
    const auto rate = [&](const auto& batch) {
      return pair.turn([&] { return 1e9 * GetBatches::kAtOnce / batch_ns(plan, batch); });
    };
    const auto reads = [&] { batches.make_reads([&] { return numbers[drawn++ % kDrawn]; }); };
    const auto gets = [&] { batches.make_gets([&] { return drawn_keys[drawn++ % kDrawn]; }); };
    alternate(me, effort.rounds, {[&] { return rate(reads); }, [&] { return rate(gets); }});
  });
  compare(result, team.series(1), "bare random reads of the same bytes", team.series(0));
  return result;
}

Result gets_of(const RealNetwork& network, const Effort& effort, const Caching& caching) {
  const std::uint32_t pairs = effort.scaled(kPairs);
  return measure_gets(
      {.params = {{"cached locations", caching.name},
                  {"pairs", double(pairs)},
                  {"at once", double(GetBatches::kAtOnce)}},
       .unit = "1/s",
       .goal = Goal{.bound = caching.least_ratio}},
      network, effort,
      {.pairs = pairs, .value_bytes = kPairBytes, .cache_bytes = caching.cache_bytes});
}

Result gets_of_size(const Effort& effort, std::size_t value_bytes) {
  const std::size_t fitting = kMostBytes / bytes_of_entry(value_bytes);
  const std::uint32_t pairs =
      effort.scaled(static_cast<std::uint32_t>(std::min<std::size_t>(fitting, kPairs)));
  return measure_gets({.params = {{"value bytes", double(value_bytes)},
                                  {"pairs", double(pairs)},
                                  {"at once", double(GetBatches::kAtOnce)}},
                       .unit = "1/s",
                       .goal = Goal{.bound = least_ratio_cached(value_bytes)}},
                      real_network("shm"), effort,
                      {.pairs = pairs, .value_bytes = value_bytes, .cache_bytes = kRoomForAll});
}

}  // namespace

Experiment store_gets(const RealNetwork& network) {
  return {.name = "gets",
          .title = "Gets of 64-byte values, 32 at once, uniform",
          .fabric = network.name,
          .run = on_network(network, for_settings(kCachings, gets_of))};
}

Experiment store_sizes() {
  return {.name = "sizes",
          .title = "Gets by the size of the value, 32 at once, uniform, with all locations cached",
          .fabric = "shm",
          .x = "value bytes",
          .run = for_settings(kSizes, gets_of_size)};
}

}  // namespace dunlin::bench

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "bench/store/experiments.hpp"
#include "bench/store/keys.hpp"
#include "bench/store/store_pair.hpp"

/// An index that grows from a thousand keys on, beside one that is laid out for all of them.
namespace dunlin::bench {
namespace {

constexpr std::uint32_t kPairs = 100'000;
constexpr std::uint64_t kKeysAtFirst = 1'000;
constexpr std::size_t kValueBytes = 64;
constexpr std::uint32_t kMostRounds = 7;

/// What is measured of each store; its series is `kFigures * (grows ? 1 : 0)` and its number.
constexpr std::uint32_t kInserts = 0, kGets = 1, kBucketReads = 2, kFigures = 3;

[[nodiscard]] std::optional<double> rate(StorePair& pair, std::size_t count, const auto& all) {
  return pair.turn([&] {
    const auto begin = std::chrono::steady_clock::now();
    all();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    return static_cast<double>(count) / seconds.count();
  });
}

/// Member 0 inserts all keys at member 1, and gets them.
void measure(Member& me, const Group& group, std::uint32_t pairs, bool grows) {
  StorePair pair(me, group,
                 {.memory_bytes = store_bytes(pairs, kValueBytes),
                  .large_bytes = 0,
                  .expected_keys = grows ? std::min<std::uint64_t>(kKeysAtFirst, pairs) : pairs,
                  .cache_bytes = 0});
  const std::vector<std::uint64_t> keys = keys_of(pair.store(), 1, pairs);
  const std::array<std::byte, kValueBytes> value{};
  const auto record = [&](std::uint32_t figure, std::optional<double> measured) {
    if (measured) me.record((grows ? kFigures : 0) + figure, *measured);
  };
  const auto in_turns = [&](const auto& begin) {
    for (std::size_t from = 0; from < keys.size(); from += StorePair::kAtOnce) {
      const std::size_t many = std::min(StorePair::kAtOnce, keys.size() - from);
      for (std::size_t i = 0; i < many; ++i) begin(pair.operation(i), keys[from + i]);
      pair.demand(many);
    }
  };
  record(kInserts, rate(pair, keys.size(), [&] {
           in_turns([&](StoreOperation& one, std::uint64_t key) {
             pair.store().insert(one, key, value);
           });
         }));
  const std::uint64_t before = pair.store().counters().at("bucket_reads");
  record(kGets, rate(pair, keys.size(), [&] {
           in_turns([&](StoreOperation& one, std::uint64_t key) { pair.store().get(one, key); });
         }));
  const double reads = static_cast<double>(pair.store().counters().at("bucket_reads") - before);
  if (me.rank() == 0) record(kBucketReads, reads / static_cast<double>(keys.size()));
  me.meet([&] { pair.poll(); });
}

}  // namespace

Experiment store_growth(const RealNetwork& network) {
  return {.name = "growth",
          .title = "An index that grows from 1,000 keys on, beside one that is laid out for all",
          .fabric = network.name,
          .run = [&network](const Effort& effort) {
            const std::uint32_t pairs = effort.scaled(kPairs);
            const Group group(network, effort);
            Team team(group.team());
            team.run([&](Member& me) {
              for (std::uint32_t round = 0; round < std::min(effort.rounds, kMostRounds); ++round)
                for (const bool first : {true, false})
                  measure(me, group, pairs, first == (round % 2 == 0));
            });
            std::vector<Result> results;
            const auto add = [&](const char* what, std::uint32_t figure, const char* unit) {
              results.push_back(
                  compared({.params = {{"figure", what}, {"pairs", double(pairs)}}, .unit = unit},
                           team.series(kFigures + figure), "an index laid out for all keys",
                           team.series(figure)));
            };
            add("inserts, 32 at once", kInserts, "1/s");
            add("gets afterwards, 32 at once, no cache", kGets, "1/s");
            add("bucket reads of a get", kBucketReads, "reads");
            return results;
          }};
}

}  // namespace dunlin::bench

#include <array>
#include <string>
#include <vector>

#include "bench/store/bare_put.hpp"
#include "bench/store/experiments.hpp"
#include "bench/store/keys.hpp"
#include "bench/store/store_pair.hpp"
#include "bench/store/ycsb.hpp"

namespace dunlin::bench {
namespace {

constexpr std::array<double, 4> kSkews{0, 0.5, 0.9, 0.99};
constexpr std::array<YcsbWorkload, 4> kReads{{{"50 %", "", 0.5, 0.5, 0, 0},
                                              {"80 %", "", 0.8, 0.2, 0, 0},
                                              {"95 %", "", 0.95, 0.05, 0, 0},
                                              {"100 %", "", 1, 0, 0, 0}}};
static_assert(2 * kReads.size() <= kMaxSeries);
constexpr std::uint32_t kPairs = 100'000;
constexpr std::size_t kValueBytes = 64;
constexpr std::size_t kEntryBytes = store::entry_bytes(sizeof(std::uint64_t), kValueBytes);
constexpr std::size_t kCacheBytes = std::size_t{8} << 20;
constexpr std::uint32_t kDrawn = 1U << 16;

/// Of the calls, which were drawn before, one after the other and then from the start again.
double calls_per_second(const std::vector<YcsbCall>& calls, const Batches& plan, const auto& make) {
  std::size_t next = 0;
  return 1e9 / batch_ns(plan, [&] { make(calls[next++ % calls.size()]); });
}

std::vector<YcsbCall> draw(const YcsbWorkload& workload, std::uint32_t pairs, double skew,
                           std::uint32_t count) {
  YcsbCalls drawn(workload, pairs, 7, skew);
  std::vector<YcsbCall> calls(count);
  for (YcsbCall& call : calls) call = drawn.next();
  return calls;
}

/// For each share of reads two series: the bare operations, and the calls.
void measure(Member& me, const Group& group, const Effort& effort, double skew) {
  const std::uint32_t pairs = effort.scaled(kPairs);
  const Batches plan = effort.plan(200, 500);
  StorePair pair(me, group,
                 {.memory_bytes = store_bytes(pairs, kValueBytes),
                  .large_bytes = 0,
                  .expected_keys = pairs,
                  .cache_bytes = kCacheBytes},
                 pairs * BarePut::bytes_for(kEntryBytes));
  const std::vector<std::uint64_t> keys = keys_of(pair.store(), 1, pairs);
  const std::array<std::byte, kValueBytes> value{};
  if (me.rank() == 0) pair.load(keys, value);
  me.meet([&] { pair.poll(); });

  BarePut bare(pair, kEntryBytes);
  const auto make_bare = [&](const YcsbCall& call) {
    if (call.kind == YcsbKind::read) {
      bare.read_entry(call.record);
    } else {
      bare(call.record);
    }
  };
  const auto make_call = [&](const YcsbCall& call) {
    if (call.kind == YcsbKind::read) {
      pair.store().get(pair.operation(0), keys[call.record]);
    } else {
      pair.store().put(pair.operation(0), keys[call.record], value);
    }
    pair.demand(1);
  };
  std::vector<std::vector<YcsbCall>> drawn;
  for (const YcsbWorkload& workload : kReads)
    drawn.push_back(draw(workload, pairs, skew, effort.scaled(kDrawn)));
  std::vector<Contender> contenders;
  for (const std::vector<YcsbCall>& calls : drawn) {
    contenders.emplace_back(
        [&] { return pair.turn([&] { return calls_per_second(calls, plan, make_bare); }); });
    contenders.emplace_back(
        [&] { return pair.turn([&] { return calls_per_second(calls, plan, make_call); }); });
  }
  alternate(me, effort.rounds, contenders);
}

std::vector<Result> measure_skew(const Effort& effort, double skew) {
  const Group group(real_network("shm"), effort);
  Team team(group.team());
  team.run([&](Member& me) { measure(me, group, effort, skew); });
  std::vector<Result> results;
  std::uint32_t series = 0;
  for (const YcsbWorkload& workload : kReads) {
    results.push_back(
        compared({.params = {{"skew", skew}, {"reads", std::string(workload.name)}}, .unit = "1/s"},
                 team.series(series + 1), "the bare operations that the calls consist of",
                 team.series(series)));
    series += 2;
  }
  return results;
}

}  // namespace

Experiment store_skew_and_reads() {
  return {.name = "skew and reads",
          .title =
              "Gets and puts in place of 64 bytes, one after the other, by one client, with "
              "all locations cached",
          .fabric = "shm",
          .x = "skew",
          .run = for_settings(kSkews, measure_skew)};
}

}  // namespace dunlin::bench

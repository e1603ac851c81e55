#include <array>
#include <vector>

#include "bench/store/experiments.hpp"
#include "bench/store/keys.hpp"
#include "bench/store/store_pair.hpp"
#include "store/format.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kPairs = 1000;
constexpr std::array<std::size_t, 3> kValueBytes{16, 64, 900};

/// Room for each of the bare places that a put works on.
constexpr std::uint64_t kPlace = 1024;

/// What a put in place is made of, on memory that is nobody's: lock; bucket; entry; then redo
/// record, entry and unlocking, which land in this order.
class BarePut {
 public:
  BarePut(StorePair& pair, std::size_t entry_bytes)
      : pair_(pair), entry_bytes_(entry_bytes), memory_(4 * kPlace / sizeof(std::uint64_t)) {}
  ~BarePut() { pair_.node().fabric().abandon(done_); }
  BarePut(const BarePut&) = delete;
  BarePut& operator=(const BarePut&) = delete;

  void operator()(std::uint32_t number) {
    const RegionId places = pair_.places();
    const std::uint64_t at = std::uint64_t{number} * 3 * kPlace;
    std::uint64_t before = 0;
    finish(compare_swap(1, places, at, 0, 1, &before));
    finish(read(1, places, at, memory_.data(), sizeof(store::Bucket)));
    finish(read(1, places, at + kPlace, bytes(1), entry_bytes_));
    const std::array batch{
        write(1, places, at + 2 * kPlace, bytes(2), sizeof(store::RedoHead) + entry_bytes_),
        write(1, places, at + kPlace, bytes(3), entry_bytes_),
        write(1, places, at, memory_.data() + memory_.size() - 1, sizeof(std::uint64_t))
            .notify(done_, Notify::remotely)};
    pair_.node().post(batch);
    wait();
  }

 private:
  std::uint64_t* bytes(std::size_t place) {
    return &memory_[place * kPlace / sizeof(std::uint64_t)];
  }
  void finish(Operation operation) {
    pair_.node().post(operation.notify(done_));
    wait();
  }
  void wait() {
    while (!done_.finished()) pair_.poll();
  }

  StorePair& pair_;
  std::size_t entry_bytes_;
  std::vector<std::uint64_t> memory_;  // its last word stays 0: the unlocking
  Completion done_;
};

Result measure_puts(const RealNetwork& network, const Effort& effort, std::size_t value_bytes) {
  const std::uint32_t pairs = effort.scaled(kPairs);
  const Batches plan = effort.plan(100, std::max(network.trips_per_batch / 4, 2U));
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    StorePair pair(
        me, group,
        {.memory_bytes = store_bytes(pairs, value_bytes), .large_bytes = 0, .expected_keys = pairs},
        std::size_t{pairs} * 3 * kPlace);
    const std::vector<std::uint64_t> keys = keys_of(pair.store(), 1, pairs);
    const std::vector<std::byte> value(value_bytes);
    if (me.rank() == 0) pair.load(keys, value);
    me.meet([&] { pair.poll(); });

    SkewedNumbers numbers(pairs, 0, 7);
    BarePut bare(pair, store::entry_bytes(sizeof(std::uint64_t), value_bytes));
    const auto put = [&] {
      pair.store().put(pair.operation(0), keys[numbers.next()], value);
      pair.demand(1);
    };
    const auto timed = [&](const auto& once) {
      return pair.turn([&] { return batch_ns(plan, once); });
    };
    alternate(me, effort.rounds,
              {[&] { return timed([&] { bare(numbers.next()); }); }, [&] { return timed(put); }});
  });
  Result result{.name = "puts", .params = {{"value bytes", double(value_bytes)}}, .unit = "ns"};
  compare(result, team.series(1), "its bare sequence: lock, two reads, three writes",
          team.series(0));
  result.goal = Goal{.on = Goal::On::ratio, .bound = 1.15};
  return result;
}

}  // namespace

Experiment store_puts(const RealNetwork& network) {
  return {.name = "puts",
          .title = "Puts in place, one after the other, beside the bare operations they consist of",
          .fabric = network.name,
          .x = "value bytes",
          .run = [&network](const Effort& effort) {
            std::vector<Result> results;
            for (const std::size_t bytes : kValueBytes)
              results.push_back(measure_puts(network, effort, bytes));
            return results;
          }};
}

}  // namespace dunlin::bench

#include <array>
#include <vector>

#include "bench/store/bare_put.hpp"
#include "bench/store/experiments.hpp"
#include "bench/store/keys.hpp"
#include "bench/store/store_pair.hpp"
#include "store/format.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kPairs = 1000;
constexpr std::array<std::size_t, 3> kValueBytes{16, 64, 900};

Result measure_puts(const RealNetwork& network, const Effort& effort, std::size_t value_bytes) {
  const std::uint32_t pairs = effort.scaled(kPairs);
  const std::size_t entry_bytes = store::entry_bytes(sizeof(std::uint64_t), value_bytes);
  const Batches plan = effort.plan(100, network.trips(4));
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    StorePair pair(
        me, group,
        {.memory_bytes = store_bytes(pairs, value_bytes), .large_bytes = 0, .expected_keys = pairs},
        pairs * BarePut::bytes_for(entry_bytes));
    const std::vector<std::uint64_t> keys = keys_of(pair.store(), 1, pairs);
    const std::vector<std::byte> value(value_bytes);
    if (me.rank() == 0) pair.load(keys, value);
    me.meet([&] { pair.poll(); });

    SkewedNumbers numbers(pairs, 0, 7);
    BarePut bare(pair, entry_bytes);
    const auto put = [&] {
      pair.store().put(pair.operation(0), keys[numbers.next()], value);
      pair.demand(1);
    };
    alternate(me, effort.rounds,
              {timed(pair, plan, [&] { bare(numbers.next()); }), timed(pair, plan, put)});
  });
  return compared(
      {.params = {{"value bytes", double(value_bytes)}}, .unit = "ns", .goal = Goal{.bound = 1.3}},
      team.series(1), "its bare sequence: lock, two reads, three writes", team.series(0));
}

}  // namespace

Experiment store_puts(const RealNetwork& network) {
  return {.name = "puts",
          .title = "Puts in place, one after the other, beside the bare operations they consist of",
          .fabric = network.name,
          .x = "value bytes",
          .run = on_network(network, for_settings(kValueBytes, measure_puts))};
}

}  // namespace dunlin::bench

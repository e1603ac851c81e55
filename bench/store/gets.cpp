#include <array>
#include <deque>
#include <vector>

#include <dunlin/store.hpp>

#include "bench/fabric/group.hpp"
#include "bench/fabric/node.hpp"
#include "bench/store/experiments.hpp"
#include "bench/store/keys.hpp"

namespace dunlin::bench {
namespace {

constexpr std::size_t kGetsAtOnce = 32;
constexpr std::uint32_t kPairs = 100'000;
constexpr std::size_t kPairBytes = 64;

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
    Node node(group.join(me.rank()));
    Store store(node.fabric(), {.memory_bytes = (std::size_t{4} << 20) + std::size_t{pairs} * 320,
                                .large_bytes = 0,
                                .expected_keys = pairs,
                                .cache_bytes = caching.cache_bytes});
    const Region places = node.fabric().allocate(
        {.name = "random places", .bytes = std::size_t{pairs} * 2 * kPairBytes});
    node.fabric().announce(places);
    connect(me, node);
    const auto poll = [&] { store.poll(); };
    std::vector<std::uint64_t> keys;
    for (std::uint64_t i = 0; keys.size() < pairs; ++i)
      if (store.home_of(mixed(i)) == 1) keys.push_back(mixed(i));
    std::deque<StoreOperation> operations;
    std::vector<remote::InFlight*> all;
    for (std::size_t i = 0; i < kGetsAtOnce; ++i) all.push_back(&operations.emplace_back(store));
    const auto demand = [&] {
      remote::wait_all(all, remote::kForever);
      for (const StoreOperation& operation : operations)
        if (!operation.ok())
          throw Error("bench: a call on the store " +
                      std::string(remote::describe(operation.status())));
    };
    const std::array<std::byte, kPairBytes> value{};
    if (me.rank() == 0) {
      for (std::size_t i = 0; i < keys.size(); i += kGetsAtOnce) {
        for (std::size_t j = 0; j < kGetsAtOnce; ++j)
          store.put(operations[j], keys[(i + j) % keys.size()], value);
        demand();
      }
      for (std::size_t i = 0; i < keys.size(); i += kGetsAtOnce) {  // fills the cache
        for (std::size_t j = 0; j < kGetsAtOnce; ++j)
          store.get(operations[j], keys[(i + j) % keys.size()]);
        demand();
      }
      while (!node.fabric().connected(1, places.id())) poll();
    }
    me.meet(poll);

    SkewedNumbers numbers(pairs, 0, 7);
    constexpr std::size_t kEntryBytes = 128;  // head, key and value, on whole lines
    std::vector<std::uint64_t> memory(kGetsAtOnce * kEntryBytes / sizeof(std::uint64_t));
    Completion done;
    std::array<Operation, kGetsAtOnce> batch;
    const auto bare = [&] {
      for (std::size_t i = 0; i < kGetsAtOnce; ++i)
        batch[i] = read(1, places.id(), std::uint64_t{numbers.next()} * kEntryBytes,
                        &memory[i * kEntryBytes / sizeof(std::uint64_t)], kEntryBytes)
                       .notify(done);
      node.post(batch);
      while (!done.finished()) poll();
    };
    const auto gets = [&] {
      for (std::size_t i = 0; i < kGetsAtOnce; ++i) store.get(operations[i], keys[numbers.next()]);
      demand();
    };
    std::uint64_t turns = 0;
    const auto turn = [&](const auto& measured) {
      return take_turn(me, poll, [&]() -> std::optional<double> {
        ++turns;
        if (me.rank() != 0) {
          while (node.word(kOver) < turns) poll();
          return std::nullopt;
        }
        const double ns = batch_ns(plan, measured) / kGetsAtOnce;
        node.end_turn(1);
        return 1e9 / ns;
      });
    };
    alternate(me, effort.rounds, {[&] { return turn(bare); }, [&] { return turn(gets); }});
    node.fabric().abandon(done);
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

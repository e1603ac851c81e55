#include <array>
#include <deque>

#include "bench/container/bare_container.hpp"
#include "bench/container/container_node.hpp"
#include "bench/container/experiments.hpp"

namespace dunlin::bench {
namespace {

constexpr std::size_t kAtOnce = 32;
constexpr double kMostRatio = 1.25;  // in time: 0.8 of the rate of bare reads
constexpr std::uint32_t kSlots = 1U << 19;
constexpr std::uint32_t kKeys = 1U << 16;

Result measure(const RealNetwork& network, const Effort& effort, Promise promise) {
  const Batches plan = effort.plan(100, std::max(network.trips_per_batch / 16, 2U));
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    ContainerPair pair(me, group);
    BenchMap map(pair.containers(), {.name = "map", .slots = kSlots, .style = Style::one_sided});
    BareContainer bare(pair.node(), kSlots);
    while (!bare.connected()) pair.containers().poll();
    pair.meet();
    const std::uint32_t count = effort.quick ? 1024 : kKeys;
    const std::vector<std::uint64_t> keys = keys_of_holder(map, count);
    if (me.rank() == 0) {
      std::vector<std::pair<std::uint64_t, std::uint64_t>> elements;
      for (const std::uint64_t key : keys) elements.emplace_back(key, key);
      if (map.insert_many(elements) != remote::Status::ok) throw Error("bench: the map is full");
      for (std::uint32_t slot = 0; slot < kSlots && network.passive_target; slot += 64)
        bare.find(slot);  // each page is mapped the first time that it is used
    }
    pair.meet();
    std::deque<BenchMap::Operation> operations;
    std::vector<remote::InFlight*> all;
    for (std::size_t i = 0; i < kAtOnce; ++i) all.push_back(&operations.emplace_back(map.core()));
    std::uint64_t next = 0;
    const auto finds = [&] {
      for (std::size_t i = 0; i < kAtOnce; ++i)
        map.find(operations[i], keys[next++ * 7919 % count], promise);
      remote::wait_all(all, remote::kForever);
      for (BenchMap::Operation& operation : operations)
        if (!operation.found()) throw Error("bench: a key is lost");
    };
    const auto reads = [&] {
      std::array<std::uint32_t, kAtOnce> where;
      for (std::uint32_t& slot : where) {
        const std::uint64_t key = keys[next++ * 7919 % count];
        slot = container::scale(static_cast<std::uint32_t>(container::hash_of(&key, sizeof key)),
                                kSlots);
      }
      bare.find_many(where);
    };
    alternate(me, effort.rounds,
              {[&] { return pair.turn([&] { return batch_ns(plan, reads) / kAtOnce; }); },
               [&] { return pair.turn([&] { return batch_ns(plan, finds) / kAtOnce; }); }});
  });
  Result result{.name = "in flight",
                .params = {{"call", "find"}, {"promise", std::string(name_of(promise))}},
                .unit = "ns"};
  compare(result, team.series(1), "bare random reads, one batch", team.series(0));
  if (network.name == "shm") result.goal = Goal{.on = Goal::On::ratio, .bound = kMostRatio};
  return result;
}

}  // namespace

Experiment finds_in_flight(const RealNetwork& network) {
  return {.name = "in flight",
          .title = "32 finds at once, for one of them",
          .fabric = network.name,
          .run = [&network](const Effort& effort) {
            std::vector<Result> results;
            for (const Promise promise : {Promise::both, Promise::reads})
              results.push_back(measure(network, effort, promise));
            return results;
          }};
}

}  // namespace dunlin::bench

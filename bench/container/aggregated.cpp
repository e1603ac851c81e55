#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "bench/container/container_node.hpp"
#include "bench/container/experiments.hpp"

namespace dunlin::bench {
namespace {

// With two processes, on shared memory: so many, or so much of what the memory permits.
constexpr double kLeastPerSecond = 20e6;
constexpr double kLeastOfBareLoop = 0.5;
constexpr std::uint32_t kSlots = 1U << 20;
constexpr std::uint32_t kInserts = 600'000;  // of each process in a round

/// Inserts that come one by one, and in batches, each round into a map of its own; and a loop of
/// each process that writes as many slots of its own memory, at the same random places.
enum class Path { calls, buffered, buffered_alone, bare_loop };

Promise promise_of(Path path) {
  return path == Path::buffered_alone ? Promise::local : Promise::both;
}

double inserts_per_s(Member& me, ContainerNode& here, Path path, std::uint32_t round,
                     std::uint32_t inserts) {
  const std::string name = std::to_string(round) + "." + std::to_string(static_cast<int>(path));
  const bool coherent = here.node.fabric().properties().atomics_coherent_with_cpu;
  BenchMap map(
      here.containers,
      {.name = name, .slots = kSlots, .style = coherent ? Style::automatic : Style::message});
  std::optional<MapBuffer<std::uint64_t, std::uint64_t>> buffer;
  if (path != Path::calls)
    buffer.emplace(map, MapBufferOptions{.name = name, .promise = promise_of(path)});
  me.meet([&] { here.poll(); });
  const double start = now_ns();
  std::uint64_t key = me.rank();
  if (buffer) {
    for (std::uint32_t i = 0; i < inserts; ++i, key += me.size())
      if (buffer->add(key, i) != remote::Status::ok) throw Error("bench: a member is lost");
    if (buffer->flush() != remote::Status::ok) throw Error("bench: a map is full");
  } else {
    std::array<std::pair<std::uint64_t, std::uint64_t>, 256> some;
    for (std::uint32_t done = 0; done < inserts; done += some.size()) {
      for (auto& element : some) element = {key, done}, key += me.size();
      if (map.insert_many(some) != remote::Status::ok) throw Error("bench: a map is full");
    }
  }
  me.meet([&] { here.poll(); });
  return double{1e9} * inserts * me.size() / (now_ns() - start);
}

/// The next 16 slots are on their way into the cache, as in the map.
double bare_inserts_per_s(Member& me, std::uint32_t inserts) {
  struct Slot {
    std::atomic<std::uint64_t> state{0};
    std::uint64_t key = 0, value = 0, spare = 0;
  };
  constexpr std::uint32_t kAhead = 16;
  std::vector<Slot> slots(kSlots);
  std::array<std::uint32_t, kAhead> next{};
  me.meet();
  const double start = now_ns();
  std::uint64_t key = me.rank();
  for (std::uint32_t i = 0; i < inserts + kAhead; ++i, key += me.size()) {
    std::uint32_t& place = next.at(i % kAhead);
    if (i >= kAhead) {
      Slot& slot = slots[place];
      std::uint64_t vacant = 0;
      slot.state.compare_exchange_strong(vacant, 1);
      slot.key = key;
      slot.value = i;
      slot.state.store(2, std::memory_order_release);
    }
    place =
        container::scale(static_cast<std::uint32_t>(container::hash_of(&key, sizeof key)), kSlots);
    __builtin_prefetch(&slots[place], 1);
  }
  me.meet();
  return double{1e9} * inserts * me.size() / (now_ns() - start);
}

std::vector<Result> measure(const RealNetwork& network, const Effort& effort) {
  const Group group(network, effort);
  Team team(group.team());
  std::uint32_t inserts = effort.scaled(kInserts);
  if (!network.passive_target) inserts = std::max(inserts / 20, 256U);
  team.run([&](Member& me) {
    ContainerNode here(group.join(me.rank()));
    connect(me, here.node);
    std::uint32_t round = 0;
    const auto once = [&](Path path) {
      return [&, path]() -> std::optional<double> {
        const double rate = path == Path::bare_loop
                                ? bare_inserts_per_s(me, inserts)
                                : inserts_per_s(me, here, path, ++round, inserts);
        return me.rank() == 0 ? std::optional(rate) : std::nullopt;
      };
    };
    alternate(me, effort.rounds,
              {once(Path::calls), once(Path::buffered), once(Path::buffered_alone),
               once(Path::bare_loop)});
  });
  const auto series = [&](Path path) { return team.series(static_cast<std::uint32_t>(path)); };
  std::vector<Result> results;
  for (const Path path : {Path::buffered, Path::buffered_alone})
    for (const auto& [limit, name] : {std::pair(Path::calls, "insert_many"),
                                      std::pair(Path::bare_loop, "a bare loop of each process")}) {
      results.push_back(
          compared({.params = {{"promise", std::string(name_of(promise_of(path)))}}, .unit = "1/s"},
                   series(path), name, series(limit)));
      if (network.is_shm() && limit == Path::bare_loop && results.back().limit)
        results.back().goal = Goal{
            .on = Goal::On::value,
            .bound = std::min(kLeastPerSecond, kLeastOfBareLoop * results.back().limit->median)};
    }
  return results;
}

}  // namespace

Experiment aggregated_inserts(const RealNetwork& network) {
  return {.name = "aggregated",
          .title = "inserts of 8-byte keys and values by a buffer, of all processes together",
          .fabric = network.name,
          .run = on_network(network, measure)};
}

}  // namespace dunlin::bench

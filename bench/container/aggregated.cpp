#include <array>

#include "bench/container/container_node.hpp"
#include "bench/container/experiments.hpp"

namespace dunlin::bench {
namespace {

constexpr double kLeastPerSecond = 20e6;  // with two processes, on shared memory
constexpr std::uint32_t kSlots = 1U << 20;
constexpr std::uint32_t kInserts = 600'000;  // of each process in a round

/// Inserts that come one by one, and in batches, each round into a map of its own.
enum class Path { calls, buffered, buffered_alone };

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
        const double rate = inserts_per_s(me, here, path, ++round, inserts);
        return me.rank() == 0 ? std::optional(rate) : std::nullopt;
      };
    };
    alternate(me, effort.rounds,
              {once(Path::calls), once(Path::buffered), once(Path::buffered_alone)});
  });
  std::vector<Result> results;
  for (const Path path : {Path::buffered, Path::buffered_alone}) {
    results.push_back(
        compared({.params = {{"promise", std::string(name_of(promise_of(path)))}}, .unit = "1/s"},
                 team.series(static_cast<std::uint32_t>(path)), "insert_many", team.series(0)));
    if (network.is_shm())
      results.back().goal = Goal{.on = Goal::On::value, .bound = kLeastPerSecond};
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

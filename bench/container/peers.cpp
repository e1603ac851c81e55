#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/container/container_node.hpp"
#include "bench/container/experiments.hpp"
#include "bench/harness/mpi.hpp"
#include "process/program.hpp"

namespace dunlin::bench {
namespace {

constexpr std::size_t kBytes = 8;
constexpr std::uint64_t kElements = 1024;
constexpr std::uint32_t kSlots = 1U << 19;
constexpr std::size_t kAtOnce = 32;
constexpr std::size_t kEvictingBytes = std::size_t{64} << 20;

/// A call of ours, and what a peer calls that is like it.
struct Comparison {
  const char* call;
  const char* theirs;
  /// Before the number in what the peer's program prints.
  const char* word;
};
/// Both tables are in the order of the contenders.
constexpr std::array kOfMpi{Comparison{"Counter: add", "MPI_Fetch_and_op and flush", "fetch_add "},
                            Comparison{"Array: add", "MPI_Fetch_and_op and flush", "fetch_add "},
                            Comparison{"Array: get", "MPI_Get and flush", "get "},
                            Comparison{"Array: put", "MPI_Put and flush", "put "}};
constexpr std::array kOfBcl{
    Comparison{"map: insert, both", "BCL: insert_or_assign, insert and find", "insert "},
    Comparison{"map: insert, slots in no cache", "BCL: the same", "insert_far "},
    Comparison{"map: find, both", "BCL: find, insert and find", "find "},
    Comparison{"map: find, reads", "BCL: find, none", "find_phasal "},
    Comparison{"queue: push, both", "BCL: CircularQueue::push", "push "},
    Comparison{"queue: pop, both", "BCL: CircularQueue::pop", "pop "},
    Comparison{"queue: push, writes", "BCL: FastQueue::push", "push_phasal "},
    Comparison{"queue: pop, reads", "BCL: FastQueue::pop", "pop_phasal "},
    Comparison{"queue: push_many of 32, each", "BCL: FastQueue::push of 32, each", "push_many "},
    Comparison{"queue: pop_many of 32, each", "BCL: FastQueue::pop of 32, each", "pop_many "}};

/// What a team of two processes measures in one round, each contender once.
using OurRound = std::function<void(ContainerPair& pair, const Batches& plan)>;

void words_round(ContainerPair& pair, const Batches& plan) {
  Counter counter(pair.containers(), {.name = "counter", .host = ContainerPair::kHolder});
  Array<std::uint64_t> array(pair.containers(), {.name = "array", .size = kElements});
  pair.meet();
  const std::uint64_t there = array.block() * ContainerPair::kHolder;
  const auto waiting_for = [&](auto begin) {
    return timed(pair, plan, [begin] {
      auto call = begin();
      demand(call);
    });
  };
  alternate(pair.me(), 1,
            {waiting_for([&] { return counter.add(1); }),
             waiting_for([&] { return array.add(there, 1); }),
             waiting_for([&] { return array.get(there); }),
             waiting_for([&] { return array.put(there, 1); })});
}

/// Finds keys that are absent, until each page of the holder's table is mapped.
void map_pages(BenchMap& map) {
  constexpr std::size_t kSlotBytes = 32;
  std::vector<bool> mapped(kSlots * kSlotBytes / kPageBytes);
  std::size_t left = mapped.size();
  for (std::uint64_t key = std::uint64_t{1} << 32; left > 0; ++key) {
    if (map.home_of(key) != ContainerPair::kHolder) continue;
    const auto hash = static_cast<std::uint32_t>(container::hash_of(&key, sizeof key));
    const std::size_t page = container::scale(hash, kSlots) * kSlotBytes / kPageBytes;
    if (mapped[page]) continue;
    auto call = map.find(key);
    demand(call);
    mapped[page] = true;
    --left;
  }
}

/// The calls of bench/bcl/calls.cpp, as many, on as many slots, and in the same order: a call that
/// needs a key or an element finds those of the contenders before it.
/// Slots of the map were used lately if nothing else is said.
void containers_round(ContainerPair& pair, const Batches& plan) {
  constexpr std::uint64_t kRounds = 2;  // the first does not count; it maps the queue's pages
  BenchMap map(pair.containers(), {.name = "map", .slots = kSlots});
  BenchQueue queue(
      pair.containers(),
      {.name = "queue",
       .capacity = std::bit_ceil(plan.batches * std::max<std::uint32_t>(plan.per_batch, kAtOnce)),
       .host = ContainerPair::kHolder});
  pair.meet();
  const std::vector<std::uint64_t> keys = keys_of_holder(map, 2 * kRounds * plan.total());
  if (pair.me().rank() == 0) map_pages(map);
  std::array<std::uint64_t, kAtOnce> elements{};
  std::uint64_t used_keys = 0;  // in the rounds before
  const auto waiting_for = [&](auto begin) {
    return timed(pair, plan, [begin] {
      auto call = begin();
      demand(call);
    });
  };
  Batches plan_of_many = plan;
  plan_of_many.per_batch = std::max<std::uint32_t>(plan.per_batch / kAtOnce, 1);
  const auto many = [&](auto move) {
    return timed(
        pair, plan_of_many,
        [move] {
          if (move() != remote::Status::ok) throw Error("bench: elements are not moved");
        },
        kAtOnce);
  };
  /// begin(key) for keys from `first` on, after finds of them, or other work that evicts all slots.
  const auto on_map = [&](std::uint64_t first, bool used_lately, auto begin) {
    return [&, first, used_lately, begin] {
      return pair.turn([&] {
        const auto call_with = [&](std::uint64_t key, auto begin_call) {
          auto call = begin_call(key);
          demand(call);
        };
        std::uint64_t next = first + used_keys;
        for (std::uint64_t i = 0; used_lately && i < plan.total(); ++i)
          call_with(keys[next + i], [&](std::uint64_t key) { return map.find(key); });
        const std::vector<char> evicting(used_lately ? 0 : kEvictingBytes, 1);
        return batch_ns(plan, [&] { call_with(keys[next++], begin); });
      });
    };
  };
  const auto insert = [&](std::uint64_t key) { return map.insert(key, 1); };
  const auto push = [&](Promise promise) {
    return waiting_for([&, promise] { return queue.push(1, promise); });
  };
  const auto pop = [&](Promise promise) {
    return waiting_for([&, promise] { return queue.pop(promise); });
  };
  std::size_t popped = 0;
  const std::vector<Contender> contenders{
      on_map(0, true, insert),
      on_map(plan.total(), false, insert),
      on_map(0, true, [&](std::uint64_t key) { return map.find(key); }),
      on_map(0, true, [&](std::uint64_t key) { return map.find(key, Promise::reads); }),
      push(Promise::both),
      pop(Promise::both),
      push(Promise::writes),
      pop(Promise::reads),
      many([&] { return queue.push_many(elements, Promise::writes); }),
      many([&] { return queue.pop_many(elements, popped, Promise::reads); })};
  for (std::uint64_t round = 0; round < kRounds; ++round, used_keys += 2 * plan.total())
    for (std::uint32_t i = 0; i < contenders.size(); ++i) {
      pair.me().meet();
      const std::optional<double> ns = contenders[i]();
      if (ns && round > 0) pair.me().record(i, *ns);
    }
  pair.me().meet();
}

// --- the peers -----------------------------------------------------------------------------------

/// A program of a peer's, run once in each round; what it prints.
struct Peer {
  std::string missing;  // what to do to make it available
  std::function<std::string()> run;
};

Peer mpi_peer(const Effort& effort, const Batches& plan) {
  const auto mpi = std::make_shared<MpiOneSided>();
  return {mpi->missing(), [=, timeout = effort.timeout] {
            return mpi->run(2, MpiOneSided::arguments(plan, kBytes), timeout);
          }};
}

/// GASNet-EX's smp conduit starts its second process itself.
Peer bcl_peer(const Effort& effort, const Batches& plan) {
  constexpr const char* kProgram = "dunlin-bcl-calls";
  const std::string program = find_program(kProgram, process::folder_of_this_program());
  if (program.empty())
    return {std::string("BCL was not measured: ") + kProgram +
                " (bench/bcl/calls.cpp, which CMake does not build) is not beside dunlin-bench",
            {}};
  return {"", [=, timeout = effort.timeout] {
            const process::Outcome run = process::run(
                {.command = {"env", "GASNET_PSHM_NODES=2", program, std::to_string(plan.batches),
                             std::to_string(plan.per_batch)},
                 .timeout = timeout});
            if (!run.status.well()) throw Error("bench: BCL " + run.status.text() + run.output);
            return run.output;
          }};
}

std::vector<Result> compare_with(const Peer& peer, std::span<const Comparison> comparisons,
                                 const OurRound& our_round, const Effort& effort,
                                 const Batches& plan) {
  const Group group(real_network("shm"), effort);
  Team team({.processes = 2, .timeout = effort.timeout});
  std::vector<std::vector<double>> theirs(comparisons.size());
  for (std::uint32_t round = 0; round < effort.rounds; ++round) {
    team.run([&](Member& me) {
      ContainerPair pair(me, group);
      our_round(pair, plan);
    });
    if (!peer.missing.empty()) continue;
    const std::string told = peer.run();
    for (std::size_t i = 0; i < comparisons.size(); ++i)
      theirs[i].push_back(last_number_after(comparisons[i].word, comparisons[i].theirs, told));
  }
  std::vector<Result> results;
  for (std::uint32_t i = 0; i < comparisons.size(); ++i)
    results.push_back(compared({.params = {{"call", comparisons[i].call}},
                                .unit = "ns",
                                .goal = Goal{.bound = 1},
                                .note = peer.missing},
                               team.series(i), comparisons[i].theirs, theirs[i]));
  return results;
}

std::vector<Result> measure(const Effort& effort) {
  const Batches of_words = effort.plan(100, 100);
  const Batches of_containers = effort.plan(50, 64);
  auto results = compare_with(mpi_peer(effort, of_words), kOfMpi, words_round, effort, of_words);
  append(results, compare_with(bcl_peer(effort, of_containers), kOfBcl, containers_round, effort,
                               of_containers));
  return results;
}

}  // namespace

Experiment container_peers() {
  return {.name = "peers",
          .title =
              "calls on containers of another process, beside one-sided operations of MPI, and "
              "BCL",
          .fabric = "shm",
          .run = measure};
}

}  // namespace dunlin::bench

#include <array>
#include <functional>
#include <string>

#include "bench/container/container_node.hpp"
#include "bench/container/experiments.hpp"
#include "bench/harness/mpi.hpp"

namespace dunlin::bench {
namespace {

constexpr std::size_t kBytes = 8;
constexpr std::uint64_t kElements = 1024;

/// Ours, in the order of the team's series, and the operation of MPI beside each.
struct Comparison {
  const char* call;
  const char* theirs;
  double MpiOneSided::Times::*time;
};
constexpr std::array kComparisons{
    Comparison{"Counter: add", "MPI_Fetch_and_op and flush", &MpiOneSided::Times::fetch_add_ns},
    Comparison{"Array: add", "MPI_Fetch_and_op and flush", &MpiOneSided::Times::fetch_add_ns},
    Comparison{"Array: get", "MPI_Get and flush", &MpiOneSided::Times::get_ns},
    Comparison{"Array: put", "MPI_Put and flush", &MpiOneSided::Times::put_ns}};

/// A round of ours; each call adds one to its series.
void our_round(Team& team, const Effort& effort, const Batches& plan) {
  const Group group(real_network("shm"), effort);
  team.run([&](Member& me) {
    ContainerPair pair(me, group);
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
    alternate(me, 1,
              {waiting_for([&] { return counter.add(1); }),
               waiting_for([&] { return array.add(there, 1); }),
               waiting_for([&] { return array.get(there); }),
               waiting_for([&] { return array.put(there, 1); })});
  });
}

std::vector<Result> measure(const Effort& effort) {
  const Batches plan = effort.plan(100, 100);
  const MpiOneSided mpi;
  Team team({.processes = 2, .timeout = effort.timeout});
  std::vector<MpiOneSided::Times> times;
  for (std::uint32_t round = 0; round < effort.rounds; ++round) {
    our_round(team, effort, plan);
    if (mpi.available()) times.push_back(mpi.measure(plan, kBytes, effort.timeout));
  }
  std::vector<Result> results;
  for (std::uint32_t i = 0; i < kComparisons.size(); ++i) {
    const Comparison& each = kComparisons.at(i);
    std::vector<double> theirs;
    for (const MpiOneSided::Times& of_round : times) theirs.push_back(of_round.*each.time);
    results.push_back(compared({.params = {{"call", each.call}},
                                .unit = "ns",
                                .goal = Goal{.bound = 1},
                                .note = mpi.missing()},
                               team.series(i), each.theirs, theirs));
  }
  return results;
}

}  // namespace

Experiment container_peers() {
  return {.name = "peers",
          .title = "calls on words of another process, beside one-sided operations of MPI",
          .fabric = "shm",
          .run = measure};
}

}  // namespace dunlin::bench

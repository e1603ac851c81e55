#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <string>
#include <vector>

#include <dunlin/container.hpp>

#include "bench/container/container_node.hpp"
#include "bench/container/experiments.hpp"
#include "bench/fabric/simulated_members.hpp"
#include "bench/harness/mpi.hpp"

namespace dunlin::bench {
namespace {

struct Kind {
  const char* name;
  const char* theirs;
  std::uint32_t ways;  // through the tree, or rounds
};
constexpr std::array kKinds{Kind{"barrier", "MPI_Barrier", 1},
                            Kind{"all_reduce", "MPI_Allreduce", 2},
                            Kind{"broadcast", "MPI_Bcast", 1}};
constexpr std::array<std::uint32_t, 4> kProcesses{2, 4, 8, 16};
constexpr std::array<std::uint32_t, 6> kSimulated{2, 4, 16, 64, 256, 1024};

/// A call of any kind; of the three, one is under way at most.
struct AnyCollective {
  void begin(Collectives& team, const std::string& name) {
    if (name == "barrier") barrier = team.barrier();
    if (name == "all_reduce") value = team.all_reduce(std::uint64_t{1}, std::plus<>());
    if (name == "broadcast") value = team.broadcast(team.members().front(), std::uint64_t{1});
    is_barrier = name == "barrier";
  }
  [[nodiscard]] bool finished() const { return barrier.finished() && value.finished(); }
  remote::Status wait() { return is_barrier ? barrier.wait() : value.wait(); }

  bool is_barrier = true;
  remote::Call<Collectives::Outcome> barrier;
  remote::Call<Collected<std::uint64_t>> value;
};

// --- processes -----------------------------------------------------------------------------------

/// Each kind adds a round to its series.
void our_round(Team& team, const Effort& effort, std::uint32_t processes, std::uint32_t count) {
  const Group group(real_network("shm"), effort, processes);
  team.run([&](Member& me) {
    ContainerNode here(group.join(me.rank()));
    connect(me, here.node);
    Collectives all(here.containers, {.name = "all"});
    me.meet([&] { here.poll(); });
    AnyCollective call;
    const auto make = [&](const char* name) {
      call.begin(all, name);
      demand(call);
    };
    for (std::uint32_t kind = 0; kind < kKinds.size(); ++kind) {
      const char* const name = kKinds.at(kind).name;
      for (std::uint32_t i = 0; i < count / 10; ++i) make(name);
      make("barrier");
      const double start = now_ns();
      for (std::uint32_t i = 0; i < count; ++i) make(name);
      make("barrier");  // a root is done before its last broadcast has come to all
      if (me.rank() == 0) me.record(kind, 1e9 * count / (now_ns() - start));
    }
    me.meet([&] { here.poll(); });
  });
}

std::vector<Result> of_processes(const Effort& effort, std::uint32_t processes) {
  const std::uint32_t count = std::max(effort.scaled(400'000 / processes / processes), 100U);
  const MpiCollectives mpi;
  Team team({.processes = processes, .timeout = effort.timeout});
  std::array<std::vector<double>, kKinds.size()> theirs;
  for (std::uint32_t round = 0; round < effort.rounds; ++round) {
    our_round(team, effort, processes, count);
    for (std::size_t kind = 0; kind < kKinds.size() && mpi.available(); ++kind)
      theirs.at(kind).push_back(
          mpi.per_second(kKinds.at(kind).name, processes, count, effort.timeout));
  }
  std::vector<Result> results;
  for (std::uint32_t kind = 0; kind < kKinds.size(); ++kind)
    results.push_back(
        compared({.params = {{"processes", double(processes)}, {"call", kKinds.at(kind).name}},
                  .unit = "1/s",
                  .goal = Goal{.bound = 1},
                  .note = mpi.missing()},
                 team.series(kind), kKinds.at(kind).theirs, theirs.at(kind)));
  return results;
}

// --- simulated -----------------------------------------------------------------------------------

struct SimulatedTeam {
  SimulatedTeam(Fabric& fabric) : containers(fabric), team(containers, {.name = "all"}) {}
  std::size_t poll() { return containers.poll(); }

  remote::Job run(std::string name, std::uint32_t times) {
    for (std::uint32_t i = 0; i < times; ++i) {
      auto value = name == "all_reduce"  ? team.all_reduce(std::uint64_t{1}, std::plus<>())
                   : name == "broadcast" ? team.broadcast(0, std::uint64_t{1})
                                         : remote::Call<Collected<std::uint64_t>>();
      static_cast<void>(co_await value);
      if (name != "barrier" && (name != "broadcast" || i + 1 < times)) continue;
      auto barrier = team.barrier();
      static_cast<void>(co_await barrier);
      if (!barrier.ok()) throw Error("bench: a simulated barrier has failed");
    }
  }

  Containers containers;
  Collectives team;
};

std::vector<Result> of_simulated(const Effort& effort, std::uint32_t members) {
  const sim::Profile& network =
      sim::profile(effort.profile.empty() ? std::string("ib100") : effort.profile);
  const std::uint32_t times = effort.quick ? 4 : 32;
  SimulatedMembers<SimulatedTeam> all(
      network, members, 1, [](Fabric& fabric) { return std::make_unique<SimulatedTeam>(fabric); });
  const auto time_of = [&](const char* name) {
    const std::uint64_t begin_ns = all.world.now_ns();
    for (Rank rank = 0; rank < members; ++rank)
      all.start(rank, [name, times](SimulatedTeam& one) { return one.run(name, times); });
    all.finish();
    return static_cast<double>(all.world.now_ns() - begin_ns) / times;
  };
  time_of("barrier");  // the regions are connected then
  std::vector<Result> results;
  const double write_ns = network.write_latency_ns + network.post_ns + network.cpu.poll_ns;
  for (const Kind& kind : kKinds)
    results.push_back(
        compared({.params = {{"members", double(members)}, {"call", kind.name}}, .unit = "ns"},
                 std::vector{time_of(kind.name)}, "computed: a write for each step",
                 std::vector{write_ns * kind.ways * std::bit_width(members - 1)}));
  return results;
}

}  // namespace

Experiment collectives() {
  return {.name = "collectives",
          .title = "barriers, all-reduces and broadcasts of 8 bytes, beside MPI's",
          .fabric = "shm",
          .x = "processes",
          .run = for_settings(kProcesses, of_processes, 2)};
}

std::vector<Experiment> simulated_collectives() {
  return {{.name = "collectives",
           .title = "barriers, all-reduces and broadcasts of 8 bytes, of many members",
           .fabric = "sim",
           .x = "members",
           .run = for_settings(kSimulated, of_simulated, 3)},
          {.name = "collectives of thousands",
           .title = "the same of 4,095 members: 10 GB, some minutes",
           .fabric = "sim",
           .only_by_name = true,
           .run = [](const Effort& effort) {
             return of_simulated(effort, effort.quick ? kSimulated[0] : kMaxMembers);
           }}};
}

}  // namespace dunlin::bench

#include <dunlin/run.hpp>

#include "bench/fabric/group.hpp"
#include "bench/harness/bare.hpp"
#include "bench/harness/mpi.hpp"
#include "bench/table/experiments.hpp"
#include "bench/table/nodes.hpp"

namespace dunlin::bench {
namespace {

struct Row {
  Cell<std::uint64_t> count;
};

constexpr double kCountingGoal = 0.8;  // on shm

/// Makes all nodes count in step: a node goes on when it sees that none is behind.
void count_in_step(Table<Row>& table) {
  table.when(all(&Row::count) >= mine(&Row::count)).recurrent([](auto& t) {
    ++t.mine().count;
    t.push(&Row::count);
  });
}

/// Makes this node count in step as long as `wanted` returns true for its own count.
template <class Wanted>
void count_in_step(Table<Row>& table, const Wanted& wanted) {
  table
      .when([wanted](const auto& t) {
        if (!wanted(t.mine().count)) return false;
        for (std::size_t i = 0; i < t.size(); ++i)
          if (t[i].count < t.mine().count) return false;
        return true;
      })
      .recurrent([](auto& t) {
        ++t.mine().count;
        t.push(&Row::count);
      });
}

/// Two nodes with a core each, or one a host: a step cannot be shorter than the bare one-way
/// latency.
std::vector<Result> count_together(const RealNetwork& network, const Effort& effort) {
  const bool shm = network.is_shm();
  const Batches plan = effort.plan(shm ? 200 : 100, shm ? 500 : network.trips_per_batch);
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    const auto joined = group.join(me.rank());
    const auto bare = group.bare(me, joined.get());
    Table<Row> table(joined);
    connect(me, table);
    std::uint64_t until = 0;
    bool counting = false;
    // Over a network the members poll between turns, too, and must not count on there.
    if (shm) {
      count_in_step(table);
    } else {
      count_in_step(table, [&](std::uint64_t count) { return counting && count < until; });
    }
    const auto poll = [&] {
      if (!shm) table.poll();
    };
    const auto dunlin = [&]() -> std::optional<double> {
      counting = true;
      const double step = batch_ns(plan, [&] {
        for (++until; table.mine().count < until;) table.poll();
      });
      return me.rank() == 0 ? std::optional(step) : std::nullopt;
    };
    std::vector<Contender> contenders{[&] {
                                        return shm ? bare::ping_pong(me, plan, bare::Spin::pause)
                                                   : bare->one_way(me, plan, 8);
                                      },
                                      [&] { return take_turn(me, poll, dunlin); }};
    if (shm)
      contenders.emplace_back([&] { return bare::count_in_step(me, plan, bare::Spin::pause); });
    alternate(me, effort.rounds, contenders);
  });
  const auto beside = [&](const char* limit, std::uint32_t series) {
    return compared(
        {.params = {{"processes", double(group.members())}, {"wait", "spin"}}, .unit = "1/s"},
        per_second(team.series(1)), limit, per_second(team.series(series)));
  };
  std::vector<Result> results{beside("one bare latency a step", 0)};
  if (shm) {
    results.front().goal = Goal{.bound = kCountingGoal};
    results.push_back(beside("two bare lines in step", 2));
  }
  return results;
}

/// Rounds a second of processes that share the cores; each call adds one to the team's series 0.
void crowded_round(Team& team, const Effort& effort, std::uint32_t processes,
                   std::uint64_t rounds) {
  const Group group(real_network("shm"), effort, processes);
  const auto timeout = static_cast<std::uint32_t>(effort.timeout.count());
  team.run([&](Member& me) {
    const auto fabric = group.join(me.rank());
    Table<Row> table(fabric);
    connect(me, table);
    count_in_step(table);
    Loop loop(*fabric, {.wait = Wait::adaptive});
    loop.add(table);
    const auto count_to = [&](std::uint64_t goal) {
      if (!loop.run_until([&] { return table.mine().count >= goal; }, timeout)) {
        throw Error("counting stopped at " + std::to_string(table.mine().count.load()));
      }
    };
    count_to(rounds / 10);
    me.meet([&] { table.poll(); });
    const std::uint64_t from = table.mine().count;
    const double start = now_ns();
    count_to(from + rounds);
    const double seconds = (now_ns() - start) / 1e9;
    if (me.rank() == 0) me.record(0, static_cast<double>(rounds) / seconds);
    me.meet([&] { table.poll(); });
  });
}

Result crowded(const Effort& effort, std::uint32_t processes, std::uint32_t full_rounds) {
  const std::uint64_t rounds = std::max(effort.scaled(full_rounds), 100U);
  const MpiCollectives mpi;
  std::vector<double> barriers;
  Team team({.processes = processes, .timeout = effort.timeout});
  for (std::uint32_t i = 0; i < effort.rounds; ++i) {
    crowded_round(team, effort, processes, rounds);
    if (mpi.available())
      barriers.push_back(mpi.per_second("barrier", processes, rounds, effort.timeout));
  }
  return compared({.params = {{"processes", double(processes)}, {"wait", "adaptive"}},
                   .unit = "1/s",
                   .goal = Goal{.bound = 1.0},
                   .note = mpi.missing()},
                  team.series(0), "MPI_Barrier", barriers);
}

std::vector<Result> count_rounds(const RealNetwork& network, const Effort& effort) {
  std::vector<Result> results = count_together(network, effort);
  if (!network.is_shm()) return results;
  results.push_back(crowded(effort, 4, 20'000));
  results.push_back(crowded(effort, 8, 8'000));
  results.push_back(crowded(effort, 16, 2'000));
  return results;
}

}  // namespace

Experiment counting(const RealNetwork& network) {
  return {.name = "counting",
          .title = "all nodes count in step; rounds per second",
          .fabric = network.name,
          .x = network.is_shm() ? "processes" : "",
          .between_hosts = !network.is_shm(),
          .run = on_network(network, count_rounds)};
}

}  // namespace dunlin::bench

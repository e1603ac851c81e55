#include <dunlin/run.hpp>

#include "bench/harness/bare.hpp"
#include "bench/harness/mpi.hpp"
#include "bench/table/experiments.hpp"
#include "bench/table/nodes.hpp"

namespace dunlin::bench {
namespace {

struct Row {
  Cell<std::uint64_t> count;
};

/// Makes all nodes count in step: a node goes on when it sees that none is behind.
void count_in_step(Table<Row>& table) {
  table.when(all(&Row::count) >= mine(&Row::count)).recurrent([](auto& t) {
    ++t.mine().count;
    t.push(&Row::count);
  });
}

std::vector<double> per_second(std::span<const double> ns) {
  std::vector<double> rates;
  for (const double x : ns) rates.push_back(1e9 / x);
  return rates;
}

/// Two nodes with a core each: a step cannot be shorter than the bare one-way latency.
std::vector<Result> two_nodes(const Effort& effort) {
  const Batches plan = effort.plan(200, 500);
  const std::string group = fresh_group();
  Team team({.processes = 2, .timeout = effort.timeout});
  team.run([&](Member& me) {
    const auto fabric = join(group, 2, me.rank());
    Table<Row> table(fabric);
    connect(me, table);
    std::uint64_t until = 0;
    count_in_step(table);
    const auto dunlin = [&]() -> std::optional<double> {
      const double step = batch_ns(plan, [&] {
        for (++until; table.mine().count < until;) table.poll();
      });
      return me.rank() == 0 ? std::optional(step) : std::nullopt;
    };
    alternate(me, effort.rounds,
              {[&] { return bare::ping_pong(me, plan, bare::Spin::pause); }, dunlin,
               [&] { return bare::count_in_step(me, plan, bare::Spin::pause); }});
  });
  Result latency{.name = "counting",
                 .params = {{"processes", 2.0}, {"wait", "spin"}},
                 .unit = "1/s",
                 .better = Better::higher,
                 .goal = Goal{.on = Goal::On::ratio, .bound = 0.8}};
  compare(latency, per_second(team.series(1)), "one bare latency a step",
          per_second(team.series(0)));
  Result stepping = latency;
  stepping.goal = std::nullopt;
  compare(stepping, per_second(team.series(1)), "two bare lines in step",
          per_second(team.series(2)));
  return {latency, stepping};
}

/// Rounds a second of processes that share the cores; each call adds one to the team's series 0.
void crowded_round(Team& team, const Effort& effort, std::uint32_t processes,
                   std::uint64_t rounds) {
  const std::string group = fresh_group();
  const auto timeout = static_cast<std::uint32_t>(effort.timeout.count());
  team.run([&](Member& me) {
    const auto fabric = join(group, processes, me.rank());
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
  const MpiBarrier mpi;
  std::vector<double> barriers;
  Team team({.processes = processes, .timeout = effort.timeout});
  for (std::uint32_t i = 0; i < effort.rounds; ++i) {
    crowded_round(team, effort, processes, rounds);
    if (mpi.available()) barriers.push_back(mpi.per_second(processes, rounds, effort.timeout));
  }
  Result result{.name = "counting",
                .params = {{"processes", double(processes)}, {"wait", "adaptive"}},
                .unit = "1/s",
                .better = Better::higher,
                .goal = Goal{.on = Goal::On::ratio, .bound = 1.0},
                .note = mpi.missing()};
  result.value = summarize(team.series(0));
  if (mpi.available()) compare(result, team.series(0), "MPI_Barrier", barriers);
  return result;
}

}  // namespace

Experiment counting() {
  return {.name = "counting",
          .title = "all nodes count in step; rounds per second",
          .fabric = "shm",
          .x = "processes",
          .run = [](const Effort& effort) {
            std::vector<Result> results = two_nodes(effort);
            results.push_back(crowded(effort, 4, 20'000));
            results.push_back(crowded(effort, 8, 8'000));
            results.push_back(crowded(effort, 16, 2'000));
            return results;
          }};
}

}  // namespace dunlin::bench

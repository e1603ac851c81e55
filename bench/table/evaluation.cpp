#include <dunlin/fabric/sim.hpp>

#include "bench/fabric/group.hpp"
#include "bench/harness/bare.hpp"
#include "bench/table/experiments.hpp"
#include "bench/table/nodes.hpp"

namespace dunlin::bench {
namespace {

/// Of the rate at which bare loads take lines from that cache.
constexpr double kBandwidthGoal = 1.0;

struct Row {
  Cell<std::int32_t> a;
};

/// Polls node 0 of `nodes`, all in this process, with a predicate that is always true: `make`
/// registers it.
template <class Make>
Result rate_of(const Effort& effort, std::uint32_t nodes, Params params, std::optional<Goal> goal,
               Make make) {
  const Batches plan = effort.plan(200, 5'000);
  const Group group(real_network("shm"), effort, nodes);
  Team team(group.team(1));
  team.run([&](Member& me) {
    const auto fabrics = group.join_many(0, nodes);
    const auto tables = tables_of<Row>(fabrics);
    for (const auto& table : tables) {
      table->mine().a = 1;
      table->push();
    }
    Table<Row>& table = *tables[0];
    std::uint64_t seen = 0;
    auto all_set = table.when(all(&Row::a) == 1).recurrent([&] { ++seen; });
    const auto has_fired = [&] { return seen > 0; };
    while (!has_fired()) {
      for (const auto& node : tables) node->poll();
    }
    all_set.remove();
    std::uint64_t fired = 0;
    make(table, fired);
    const std::size_t pitch = 64;
    alternate(me, effort.rounds,
              {[&] {
                 return nodes == 2 ? bare::test_and_count(plan, me.arena())
                                   : bare::scan_words(plan, me.arena(), nodes - 1, pitch);
               },
               [&] { return batch_ns(plan, [&] { table.poll(); }); }});
    if (fired < plan.total()) throw Error("bench: the predicate did not fire in every poll");
  });
  return compared(
      {.params = std::move(params), .unit = "1/s", .goal = goal}, per_second(team.series(1)),
      nodes == 2 ? "bare test and count" : "bare look at each line", per_second(team.series(0)));
}

/// Rows that are true from the beginning, so that one node can be looked at alone.
struct TrueRow {
  Cell<std::int32_t> a{1};
};

/// More rows than a host has members: node 0 of a simulated group, polled directly.
Result rate_of_thousand(const Effort& effort) {
  constexpr std::uint32_t kRows = 1'000;
  const Batches plan = effort.plan(200, 200);
  Team team({.processes = 1, .timeout = effort.timeout});
  team.run([&](Member& me) {
    sim::World world(sim::profile("ideal"), kRows, 1);
    Table<TrueRow> table(world.fabric(0));
    std::uint64_t fired = 0;
    table.when(all(&TrueRow::a) == 1).recurrent([&fired] { ++fired; });
    alternate(me, effort.rounds,
              {[&] { return bare::scan_words(plan, me.arena(), kRows); },
               [&] { return batch_ns(plan, [&] { table.poll(); }); },
               [&] { return bare::scan_bytes(plan, me.arena(), kRows * kCacheLineBytes); }});
    if (fired < plan.total()) throw Error("bench: the predicate did not fire in every poll");
  });
  return compared({.params = {{"predicate", "all 1000 rows"}},
                   .unit = "1/s",
                   .goal = Goal{.bound = kBandwidthGoal},
                   .note = "1,000 rows lie in 64 KB; reading all of it takes " +
                           to_text(summarize(team.series(2)).median, "ns") + "."},
                  per_second(team.series(1)), "bare look at each line", per_second(team.series(0)));
}

std::vector<Result> evaluate(const Effort& effort) {
  const auto with_goal = [&](std::uint32_t nodes, const char* predicate, double goal, auto make) {
    return rate_of(effort, nodes, {{"predicate", predicate}},
                   Goal{.on = Goal::On::value, .bound = goal}, make);
  };
  return {with_goal(2, "one row", 100e6,
                    [](auto& table, auto& fired) {
                      table.when(row(1, &Row::a) == 1).recurrent([&fired] { ++fired; });
                    }),
          with_goal(30, "29 remote rows", 30e6,
                    [](auto& table, auto& fired) {
                      table.when(all(&Row::a).others() == 1).recurrent([&fired] { ++fired; });
                    }),
          with_goal(30, "all 30 rows", 30e6,
                    [](auto& table, auto& fired) {
                      table.when(all(&Row::a) == 1).recurrent([&fired] { ++fired; });
                    }),
          rate_of_thousand(effort)};
}

/// Complexity: how the rate falls with the number of rows that the predicate reads.
Result by_complexity(const Effort& effort, std::uint32_t rows) {
  return rate_of(
      effort, 30, {{"rows", double(rows)}}, std::nullopt, [rows](auto& table, auto& fired) {
        table.when(all(&Row::a).over(rows_to(rows)) == 1).recurrent([&fired] { ++fired; });
      });
}

}  // namespace

Experiment evaluation() {
  return {.name = "evaluation",
          .title = "evaluations with a trigger each, per second of one core",
          .fabric = "shm",
          .run = evaluate};
}

Experiment complexity() {
  return {.name = "complexity",
          .title = "evaluations with a trigger each, by the rows that the predicate reads",
          .fabric = "shm",
          .x = "rows",
          .run = for_settings({1U, 2U, 4U, 8U, 16U, 29U}, by_complexity)};
}

}  // namespace dunlin::bench

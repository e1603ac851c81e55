#include <fmt/format.h>

#include "bench/fabric/group.hpp"
#include "bench/harness/bare.hpp"
#include "bench/table/experiments.hpp"
#include "bench/table/nodes.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kNodes = 16;

struct Row {
  Cell<std::uint64_t> a;
};

/// What a push costs its caller: to `peers` of 15, with and without waiting until it is placed.
std::vector<Result> push_to(const Effort& effort, std::uint32_t peers) {
  const Batches plan = effort.plan(200, 500);
  const Group group(real_network("shm"), effort, kNodes);
  Team team(group.team(1));
  team.run([&](Member& me) {
    const auto fabrics = group.join_many(0, kNodes);
    const auto tables = tables_of<Row>(fabrics);
    connect(me, tables);
    Table<Row>& table = *tables[0];
    auto some = table.to(rows_to(peers));
    std::uint64_t next = 0;
    const auto push = [&] {
      table.mine().a = ++next;
      if (peers == kNodes - 1) {
        (void)table.push(&Row::a);
      } else {
        (void)some.push(&Row::a);
      }
    };
    Completion placed;
    const auto push_and_wait = [&] {
      table.mine().a = ++next;
      if (peers == kNodes - 1) {
        (void)table.push(placed, &Row::a);
      } else {
        (void)some.push(placed, &Row::a);
      }
      while (!placed.finished()) table.poll();
    };
    alternate(
        me, effort.rounds,
        {[&] { return bare::fan_out(plan, me.arena(), sizeof(Row), peers); },
         [&] { return batch_ns(plan, push); }, [&] { return batch_ns(plan, push_and_wait); }});
  });
  std::vector<Result> results;
  for (const std::uint32_t series : {1U, 2U}) {
    results.push_back(compared(
        {.params = {{"peers", double(peers)}, {"completion", series == 1 ? "no" : "placed at all"}},
         .unit = "ns"},
        team.series(series), "bare stores", team.series(0)));
  }
  return results;
}

/// What a push takes until it is placed at all of so many nodes of another process, which answers.
Result push_to_all(const RealNetwork& network, const Effort& effort, std::uint32_t peers) {
  const Batches plan = effort.plan(100, network.trips_per_batch);
  const Group group(network, effort, peers + 1);
  Team team(group.team());
  team.run([&](Member& me) {
    const auto fabrics = me.rank() > 1    ? std::vector<std::unique_ptr<Fabric>>()
                         : me.rank() == 1 ? group.join_many(1, peers)
                                          : group.join_many(0, 1);
    const auto bare = group.bare(me, fabrics.empty() ? nullptr : fabrics.front().get());
    const auto tables = tables_of<Row>(fabrics);
    const auto poll = [&] {
      for (const auto& table : tables) table->poll();
    };
    connect(me, tables);
    Completion placed;
    const auto push = [&]() -> std::optional<double> {
      if (me.rank() != 0) return std::nullopt;  // it polls in take_turn() until we are done
      Table<Row>& table = *tables.front();
      return batch_ns(plan, [&] {
        table.mine().a = table.mine().a + 1;
        static_cast<void>(table.push(placed, &Row::a));
        while (!placed.finished()) table.poll();
      });
    };
    alternate(
        me, effort.rounds,
        {[&] { return bare->spread(me, plan, peers); }, [&] { return take_turn(me, poll, push); }});
  });
  return compared(
      {.params = {{"peers", double(peers)}, {"completion", "placed at all"}}, .unit = "ns"},
      team.series(1), network.bare_name + ", answered by each", team.series(0));
}

/// What a push costs its caller when one follows the other.
Result push_on_and_on(const RealNetwork& network, const Effort& effort) {
  const std::uint32_t pushes = effort.scaled(100'000);
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    const auto joined = group.join(me.rank());
    const auto bare = group.bare(me, joined.get());
    Table<Row> table(joined);
    connect(me, table);
    const auto poll = [&] { table.poll(); };
    auto peer = table.to({1});
    Completion placed;
    const auto push = [&]() -> std::optional<double> {
      if (me.rank() != 0) return std::nullopt;
      const double start = now_ns();
      for (std::uint32_t i = 1; i <= pushes; ++i) {
        table.mine().a = table.mine().a + 1;
        static_cast<void>(i == pushes ? peer.push(placed, &Row::a) : peer.push(&Row::a));
        if (i % 64 == 0) table.poll();
      }
      while (!placed.finished()) table.poll();
      return (now_ns() - start) / pushes;
    };
    alternate(me, effort.rounds,
              {[&] { return bare->stream(me, 8, pushes, 1); },
               [&] { return take_turn(me, poll, push); }});
  });
  return compared({.params = {{"peers", 1.0}, {"completion", "of the last"}}, .unit = "ns"},
                  team.series(1), network.bare_name + ", a send each", team.series(0));
}

std::vector<Result> push_over(const RealNetwork& network, const Effort& effort) {
  const auto to_all = for_settings({1U, 4U, 8U}, push_to_all);
  return joined<Result>(push_on_and_on(network, effort), to_all(network, effort));
}

}  // namespace

Experiment pushing(const RealNetwork& network) {
  Experiment push{.name = "push",
                  .title = "what a push takes, by the peers it goes to",
                  .fabric = network.name,
                  .between_hosts = true,
                  .run = on_network(network, push_over)};
  if (!network.is_shm()) return push;
  push.title =
      fmt::format("what a push costs its caller, by the peers it goes to ({} nodes)", kNodes);
  push.x = "peers";
  push.between_hosts = false;
  push.run = for_settings({1U, 4U, kNodes - 1}, push_to);
  return push;
}

}  // namespace dunlin::bench

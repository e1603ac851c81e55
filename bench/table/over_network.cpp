#include <dunlin/run.hpp>

#include "bench/fabric/group.hpp"
#include "bench/table/experiments.hpp"
#include "bench/table/nodes.hpp"
#include "bench/table/ping_pong.hpp"
#include "team/cores.hpp"

/// The figures of the table that a network changes, each beside what the same processes can do
/// without Dunlin over it, with the same way of waiting.
namespace dunlin::bench {
namespace {

constexpr std::uint32_t kIdlers = 8;
constexpr std::uint32_t kIdleMs = 1'000;

struct Row {
  Cell<std::uint64_t> count;
};

std::vector<Result> detect(const RealNetwork& network, const Effort& effort) {
  const Batches plan = effort.plan(100, network.trips_per_batch);
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    const auto joined = group.join(me.rank());
    const auto bare = group.bare(me, joined.get());
    if (me.rank() == 0) me.note(group.description(*joined));
    PingPong<1> writes(me, *joined);
    PingPong<1> reads(me, *joined, {.name = "pulled", .refresh = Refresh::reads});
    const auto poll = [&] {
      writes.table().poll();
      reads.table().poll();
    };
    connect(me, writes.table(), reads.table());
    alternate(me, effort.rounds,
              {[&] { return bare->one_way(me, plan, 8); },
               [&] { return take_turn(me, poll, [&] { return writes.round(plan); }); },
               [&] { return take_turn(me, poll, [&] { return reads.round(plan); }); }});
  });
  std::vector<Result> results;
  for (const std::uint32_t series : {1U, 2U}) {
    Result result{.name = "detection",
                  .params = {{"refresh", series == 1 ? "writes" : "reads"}},
                  .unit = "ns"};
    compare(result, team.series(series), network.bare_name + ", one way", team.series(0));
    results.push_back(std::move(result));
  }
  results.front().note = team.note();
  if (network.goals.detection_ratio)
    results.front().goal = Goal{.on = Goal::On::ratio, .bound = *network.goals.detection_ratio};
  return results;
}

/// A step cannot be shorter than the bare one-way latency.
std::vector<Result> count_together(const RealNetwork& network, const Effort& effort) {
  const Batches plan = effort.plan(100, network.trips_per_batch);
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    const auto joined = group.join(me.rank());
    const auto bare = group.bare(me, joined.get());
    Table<Row> table(joined);
    connect(me, table);
    std::uint64_t until = 0;
    bool counting = false;
    table
        .when([&](const auto& t) {
          if (!counting || t.mine().count >= until) return false;
          for (std::size_t i = 0; i < t.size(); ++i)
            if (t[i].count < t.mine().count) return false;
          return true;
        })
        .recurrent([](auto& t) {
          ++t.mine().count;
          t.push(&Row::count);
        });
    const auto poll = [&] { table.poll(); };
    const auto dunlin = [&]() -> std::optional<double> {
      counting = true;
      const double step = batch_ns(plan, [&] {
        for (++until; table.mine().count < until;) table.poll();
      });
      return me.rank() == 0 ? std::optional(step) : std::nullopt;
    };
    alternate(
        me, effort.rounds,
        {[&] { return bare->one_way(me, plan, 8); }, [&] { return take_turn(me, poll, dunlin); }});
  });
  const auto per_second = [&](std::uint32_t series) {
    std::vector<double> rates;
    for (const double ns : team.series(series)) rates.push_back(1e9 / ns);
    return rates;
  };
  Result result{.name = "counting",
                .params = {{"processes", static_cast<double>(group.members())}, {"wait", "spin"}},
                .unit = "1/s",
                .better = Better::higher};
  compare(result, per_second(1), "one bare latency a step", per_second(0));
  return {result};
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
        table.mine().count = table.mine().count + 1;
        static_cast<void>(table.push(placed, &Row::count));
        while (!placed.finished()) table.poll();
      });
    };
    alternate(
        me, effort.rounds,
        {[&] { return bare->spread(me, plan, peers); }, [&] { return take_turn(me, poll, push); }});
  });
  Result result{.name = "push",
                .params = {{"peers", static_cast<double>(peers)}, {"completion", "placed at all"}},
                .unit = "ns"};
  compare(result, team.series(1), network.bare_name + ", answered by each", team.series(0));
  return result;
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
        table.mine().count = table.mine().count + 1;
        static_cast<void>(i == pushes ? peer.push(placed, &Row::count) : peer.push(&Row::count));
        if (i % 64 == 0) table.poll();
      }
      while (!placed.finished()) table.poll();
      return (now_ns() - start) / pushes;
    };
    alternate(me, effort.rounds,
              {[&] { return bare->stream(me, 8, pushes, 1); },
               [&] { return take_turn(me, poll, push); }});
  });
  Result result{
      .name = "push", .params = {{"peers", 1.0}, {"completion", "of the last"}}, .unit = "ns"};
  compare(result, team.series(1), network.bare_name + ", a send each", team.series(0));
  return result;
}

std::vector<Result> push(const RealNetwork& network, const Effort& effort) {
  std::vector<Result> results{push_on_and_on(network, effort)};
  for (const std::uint32_t peers : {1U, 4U, 8U}) {
    results.push_back(push_to_all(network, effort, peers));
  }
  return results;
}

/// Percent of a core that all nodes together use while they have nothing to do.
Result cpu_use(const RealNetwork& network, const Effort& effort) {
  const Group group(network, effort, kIdlers);
  const std::uint32_t ms = effort.quick ? 20 : kIdleMs;
  TeamOptions options = group.team(kIdlers);
  options.pin = false;
  Team team(options);
  team.run([&](Member& me) {
    const auto joined = group.join(me.rank());
    Table<Row> table(joined);
    table.when(all(&Row::count) == 1U).recurrent([] {});
    connect(me, table);
    Loop loop(*joined, {.wait = Wait::adaptive});
    loop.add(table);
    const auto poll = [&] { table.poll(); };
    // The first round lets all fall asleep; meeting costs time of its own and is not counted.
    for (std::uint32_t round = 0; round <= effort.rounds; ++round) {
      const std::uint64_t used = app::cpu_time_ns();
      const double start = now_ns();
      static_cast<void>(loop.run_until([] { return false; }, ms));
      const double percent =
          100.0 * static_cast<double>(app::cpu_time_ns() - used) / (now_ns() - start);
      double sum = 0;
      for (const std::string& word : me.exchange(std::to_string(percent), poll))
        sum += std::stod(word);
      if (me.rank() == 0 && round > 0) me.record(0, sum);
    }
    me.meet();
  });
  Result result{.name = "idle",
                .params = {{"what", "CPU use of 8 nodes in all"}},
                .unit = "% of a core",
                .goal = Goal{.on = Goal::On::value, .bound = 1.0}};
  if (const auto series = team.series(0); !series.empty()) result.value = summarize(series);
  result.limit = Summary{};
  result.limit_name = "asleep";
  return result;
}

/// Half a round trip between two that sleep whenever there is nothing to do.
Result wake_up(const RealNetwork& network, const Effort& effort) {
  const Batches plan = effort.plan(100, 4);
  const auto timeout = static_cast<std::uint32_t>(effort.timeout.count());
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    const auto joined = group.join(me.rank());
    const auto bare = group.bare(me, joined.get());
    PingPong<1> game(me, *joined);
    connect(me, game.table());
    const auto poll = [&] { game.table().poll(); };
    alternate(
        me, effort.rounds,
        {[&] { return bare->asleep(me, plan); },
         [&] { return take_turn(me, poll, [&] { return game.round_asleep(plan, timeout); }); }});
  });
  Result result{.name = "idle", .params = {{"what", "waking a node that sleeps"}}, .unit = "ns"};
  compare(result, team.series(1), network.bare_name + ", asleep", team.series(0));
  return result;
}

std::vector<Result> idle_on(const RealNetwork& network, const Effort& effort) {
  return {cpu_use(network, effort), wake_up(network, effort)};
}

using Figure = std::vector<Result> (*)(const RealNetwork& network, const Effort& effort);

Experiment experiment(const char* name, const char* title, const RealNetwork& network, Figure run) {
  return {.name = name,
          .title = title,
          .fabric = network.name,
          .between_hosts = true,
          .run = [&network, run](const Effort& effort) { return run(network, effort); }};
}

}  // namespace

std::vector<Experiment> network_experiments() {
  std::vector<Experiment> all;
  for (const RealNetwork& network : real_networks()) {
    if (network.name == "shm") continue;  // a file each
    all.push_back(experiment("detection",
                             "from a write to the trigger at the other node, half a round trip",
                             network, detect));
    all.push_back(experiment("counting", "all nodes count in step; rounds per second", network,
                             count_together));
    all.push_back(experiment("push", "what a push takes, by the peers it goes to", network, push));
    all.push_back(
        experiment("idle", "what nodes with nothing to do cost, and how long they take to wake up",
                   network, idle_on));
  }
  return all;
}

}  // namespace dunlin::bench

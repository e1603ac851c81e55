#include <algorithm>
#include <atomic>

#include <dunlin/fabric/ofi.hpp>
#include <dunlin/run.hpp>

#include "bench/harness/cores.hpp"
#include "bench/table/experiments.hpp"
#include "bench/table/network.hpp"
#include "bench/table/nodes.hpp"
#include "bench/table/ping_pong.hpp"

/// The figures of the table that a network changes, each beside what the same processes can do over
/// bare sockets with the same way of waiting.
namespace dunlin::bench {
namespace {

constexpr std::uint32_t kIdlers = 8;
constexpr std::uint32_t kIdleMs = 1'000;
constexpr std::uint32_t kTripsPerBatch = 10;  // which take some ten microseconds each

struct Row {
  Cell<std::uint64_t> count;
};

std::vector<Result> detect(const std::string& fabric, const Effort& effort) {
  const Batches plan = effort.plan(100, kTripsPerBatch);
  const NetworkGroup group(fabric, effort, 2);
  Team team({.processes = 2, .timeout = effort.timeout});
  team.run([&](Member& me) {
    const auto joined = group.join(me.rank());
    PingPong<1> writes(me, *joined);
    PingPong<1> reads(me, *joined, {.name = "pulled", .refresh = Refresh::reads});
    const auto poll = [&] {
      writes.table().poll();
      reads.table().poll();
    };
    connect(me, writes.table(), reads.table());
    alternate(me, effort.rounds,
              {[&] { return group.bare().one_way(me, plan, 8); },
               [&] { return polled_turn(me, poll, [&] { return writes.round(plan); }); },
               [&] { return polled_turn(me, poll, [&] { return reads.round(plan); }); }});
  });
  std::vector<Result> results;
  for (const std::uint32_t series : {1U, 2U}) {
    Result result{.name = "detection",
                  .params = {{"refresh", series == 1 ? "writes" : "reads"}},
                  .unit = "ns"};
    compare(result, team.series(series), group.bare().name() + ", one way", team.series(0));
    results.push_back(std::move(result));
  }
  results.front().note = NetworkGroup::description(fabric, effort);
  return results;
}

/// Two nodes: a step cannot be shorter than the bare one-way latency.
std::vector<Result> count(const std::string& fabric, const Effort& effort) {
  const Batches plan = effort.plan(100, kTripsPerBatch);
  const NetworkGroup group(fabric, effort, 2);
  Team team({.processes = 2, .timeout = effort.timeout});
  team.run([&](Member& me) {
    const auto joined = group.join(me.rank());
    Table<Row> table(joined);
    connect(me, table);
    std::uint64_t until = 0;
    bool counting = false;
    table
        .when([&](const auto& t) {
          return counting && t.mine().count < until && t[0].count >= t.mine().count &&
                 t[1].count >= t.mine().count;
        })
        .recurrent([](auto& t) {
          ++t.mine().count;
          t.push(&Row::count);
        });
    const auto poll = [&] { table.poll(); };
    const auto dunlin = [&]() -> std::optional<double> {
      counting = true;
      const double step = median_ns(plan, [&] {
        for (++until; table.mine().count < until;) table.poll();
      });
      return me.rank() == 0 ? std::optional(step) : std::nullopt;
    };
    alternate(me, effort.rounds,
              {[&] { return group.bare().one_way(me, plan, 8); },
               [&] { return polled_turn(me, poll, dunlin); }});
  });
  const auto per_second = [&](std::uint32_t series) {
    std::vector<double> rates;
    for (const double ns : team.series(series)) rates.push_back(1e9 / ns);
    return rates;
  };
  Result result{.name = "counting",
                .params = {{"processes", 2.0}, {"wait", "spin"}},
                .unit = "1/s",
                .better = Better::higher};
  compare(result, per_second(1), "one bare latency a step", per_second(0));
  return {result};
}

/// What a push takes until it is placed at all of so many nodes of another process, which answers.
Result push_to_all(const std::string& fabric, const Effort& effort, std::uint32_t peers) {
  const Batches plan = effort.plan(100, kTripsPerBatch);
  const NetworkGroup group(fabric, effort, peers + 1);
  Team team({.processes = 2, .timeout = effort.timeout});
  team.run([&](Member& me) {
    const auto fabrics = me.rank() == 0 ? group.join_many(0, 1) : group.join_many(1, peers);
    const auto tables = tables_of<Row>(fabrics);
    const auto poll = [&] {
      for (const auto& table : tables) table->poll();
    };
    connect(me, tables);
    Table<Row>& table = *tables[0];
    Completion placed;
    const auto push = [&]() -> std::optional<double> {
      if (me.rank() != 0) return std::nullopt;  // it polls in polled_turn() until we are done
      return median_ns(plan, [&] {
        table.mine().count = table.mine().count + 1;
        static_cast<void>(table.push(placed, &Row::count));
        while (!placed.finished()) table.poll();
      });
    };
    alternate(me, effort.rounds,
              {[&] { return group.bare().spread(me, plan, peers); },
               [&] { return polled_turn(me, poll, push); }});
  });
  Result result{.name = "push",
                .params = {{"peers", static_cast<double>(peers)}, {"completion", "placed at all"}},
                .unit = "ns"};
  compare(result, team.series(1), group.bare().name() + ", answered by each", team.series(0));
  return result;
}

/// What a push costs its caller when one follows the other.
Result push_on_and_on(const std::string& fabric, const Effort& effort) {
  const std::uint32_t pushes = effort.scaled(100'000);
  const NetworkGroup group(fabric, effort, 2);
  Team team({.processes = 2, .timeout = effort.timeout});
  team.run([&](Member& me) {
    const auto joined = group.join(me.rank());
    Table<Row> table(joined);
    connect(me, table);
    const auto poll = [&] { table.poll(); };
    Completion placed;
    const auto push = [&]() -> std::optional<double> {
      if (me.rank() != 0) return std::nullopt;
      const double start = now_ns();
      for (std::uint32_t i = 1; i <= pushes; ++i) {
        table.mine().count = table.mine().count + 1;
        static_cast<void>(i == pushes ? table.push(placed, &Row::count) : table.push(&Row::count));
        if (i % 64 == 0) table.poll();
      }
      while (!placed.finished()) table.poll();
      return (now_ns() - start) / pushes;
    };
    alternate(me, effort.rounds,
              {[&] { return group.bare().stream(me, 8, pushes, 1); },
               [&] { return polled_turn(me, poll, push); }});
  });
  Result result{
      .name = "push", .params = {{"peers", 1.0}, {"completion", "of the last"}}, .unit = "ns"};
  compare(result, team.series(1), group.bare().name() + ", a send each", team.series(0));
  return result;
}

std::vector<Result> push(const std::string& fabric, const Effort& effort) {
  std::vector<Result> results{push_on_and_on(fabric, effort)};
  for (const std::uint32_t peers : {1U, 4U, 8U}) {
    results.push_back(push_to_all(fabric, effort, peers));
  }
  return results;
}

/// Percent of a core that all nodes together use while they have nothing to do.
Result cpu_use(const std::string& fabric, const Effort& effort) {
  const NetworkGroup group(fabric, effort, kIdlers);
  const std::uint32_t ms = effort.quick ? 20 : kIdleMs;
  Team team({.processes = kIdlers, .pin = false, .timeout = effort.timeout});
  team.run([&](Member& me) {
    const auto joined = group.join(me.rank());
    Table<Row> table(joined);
    table.when(all(&Row::count) == 1U).recurrent([] {});
    connect(me, table);
    Loop loop(*joined, {.wait = Wait::adaptive});
    loop.add(table);
    const auto poll = [&] { table.poll(); };
    auto* const percents = reinterpret_cast<double*>(me.arena().data());
    // The first round lets all fall asleep; meeting costs time of its own and is not counted.
    for (std::uint32_t round = 0; round <= effort.rounds; ++round) {
      const std::uint64_t used = cpu_time_ns();
      const double start = now_ns();
      static_cast<void>(loop.run_until([] { return false; }, ms));
      const double percent = 100.0 * static_cast<double>(cpu_time_ns() - used) / (now_ns() - start);
      std::atomic_ref(percents[me.rank()]).store(percent);
      me.meet(poll);
      double sum = 0;
      for (std::uint32_t r = 0; r < me.size(); ++r) sum += std::atomic_ref(percents[r]).load();
      if (me.rank() == 0 && round > 0) me.record(0, sum);
      me.meet(poll);
    }
  });
  Result result{.name = "idle",
                .params = {{"what", "CPU use of 8 nodes in all"}},
                .unit = "% of a core",
                .goal = Goal{.on = Goal::On::value, .bound = 1.0}};
  result.value = summarize(team.series(0));
  result.limit = Summary{};
  result.limit_name = "asleep";
  return result;
}

/// Half a round trip between two that sleep whenever there is nothing to do.
Result wake_up(const std::string& fabric, const Effort& effort) {
  const Batches plan = effort.plan(100, 4);
  const auto timeout = static_cast<std::uint32_t>(effort.timeout.count());
  const NetworkGroup group(fabric, effort, 2);
  Team team({.processes = 2, .timeout = effort.timeout});
  team.run([&](Member& me) {
    const auto joined = group.join(me.rank());
    PingPong<1> game(me, *joined);
    connect(me, game.table());
    const auto poll = [&] { game.table().poll(); };
    alternate(
        me, effort.rounds,
        {[&] { return group.bare().asleep(me, plan); },
         [&] { return polled_turn(me, poll, [&] { return game.round_asleep(plan, timeout); }); }});
  });
  Result result{.name = "idle", .params = {{"what", "waking a node that sleeps"}}, .unit = "ns"};
  compare(result, team.series(1), group.bare().name() + ", epoll", team.series(0));
  return result;
}

std::vector<Result> idle_on(const std::string& fabric, const Effort& effort) {
  return {cpu_use(fabric, effort), wake_up(fabric, effort)};
}

using Figure = std::vector<Result> (*)(const std::string& fabric, const Effort& effort);

Experiment experiment(const char* name, const char* title, const std::string& fabric, Figure run,
                      const char* x = "") {
  return {.name = name,
          .title = title,
          .fabric = fabric,
          .x = x,
          .run = [fabric, run](const Effort& effort) { return run(fabric, effort); }};
}

bool is_there(const std::string& fabric) {
  if (fabric != "ofi") return false;
  const std::vector<std::string> networks = ofi::networks();
  return std::ranges::any_of(networks, [](const auto& line) { return line.starts_with("tcp: "); });
}

}  // namespace

std::vector<Experiment> network_experiments() {
  std::vector<Experiment> all;
  for (const std::string fabric : {"ofi"}) {  // a further network has its name here
    if (!is_there(fabric)) continue;
    all.push_back(experiment("detection",
                             "from a write to the trigger at the other node, half a round trip",
                             fabric, detect));
    all.push_back(
        experiment("counting", "two nodes count in step; rounds per second", fabric, count));
    all.push_back(experiment("push", "what a push takes, by the peers it goes to", fabric, push));
    all.push_back(
        experiment("idle", "what nodes with nothing to do cost, and how long they take to wake up",
                   fabric, idle_on));
  }
  return all;
}

}  // namespace dunlin::bench

#include <dunlin/run.hpp>

#include "bench/fabric/group.hpp"
#include "bench/harness/bare.hpp"
#include "bench/table/experiments.hpp"
#include "bench/table/nodes.hpp"
#include "bench/table/ping_pong.hpp"
#include "team/cores.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kIdlers = 8;
constexpr std::uint32_t kIdleMs = 1'000;

/// Percent of a core that this process uses while its loop has nothing to do.
double idle_percent(Loop& loop, std::uint32_t ms) {
  const std::uint64_t used = app::cpu_time_ns();
  const double start = now_ns();
  (void)loop.run_until([] { return false; }, ms);
  return 100.0 * static_cast<double>(app::cpu_time_ns() - used) / (now_ns() - start);
}

Result cpu_use(const RealNetwork& network, const Effort& effort) {
  const Group group(network, effort, kIdlers);
  const std::uint32_t ms = effort.quick ? 20 : kIdleMs;
  TeamOptions options = group.team(kIdlers);
  options.pin = false;
  Team team(options);
  team.run([&](Member& me) {
    const auto joined = group.join(me.rank());
    Table<Ball<1>> table(*joined);
    table.when(all(&Ball<1>::a) == 1).recurrent([] {});
    connect(me, table);
    Loop loop(*joined, {.wait = Wait::adaptive});
    loop.add(table);
    const auto poll = [&] { table.poll(); };
    // The first round lets all fall asleep; meeting costs time of its own and is not counted.
    for (std::uint32_t round = 0; round <= effort.rounds; ++round) {
      const double percent = idle_percent(loop, ms);
      double sum = 0;
      for (const std::string& word : me.exchange(std::to_string(percent), poll))
        sum += std::stod(word);
      if (me.rank() == 0 && round > 0) me.record(0, sum);
    }
    me.meet();
  });
  Result result{.params = {{"what", "CPU use of 8 nodes in all"}},
                .unit = "% of a core",
                .limit_name = "asleep",
                .limit = Summary{},
                .goal = Goal{.on = Goal::On::value, .bound = 1.0}};
  if (const auto series = team.series(0); !series.empty()) result.value = summarize(series);
  return result;
}

/// On shm from a write to the answer of a node that was asleep; over a network half a round trip
/// between two that sleep whenever there is nothing to do.
Result wake_up(const RealNetwork& network, const Effort& effort) {
  const bool shm = network.is_shm();
  const std::uint32_t wakes = effort.scaled(200);
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
    const auto dunlin = [&]() -> std::optional<double> {
      if (!shm) return game.round_asleep(plan, timeout);
      if (me.rank() == 0) return game.answers_after(kUntilAsleepNs, wakes);
      game.answer_asleep(wakes, timeout);
      return std::nullopt;
    };
    alternate(me, effort.rounds,
              {[&] { return shm ? bare::wake_by_futex(me, wakes) : bare->asleep(me, plan); },
               [&] { return take_turn(me, poll, dunlin); }});
  });
  return compared({.params = {{"what", "waking a node that sleeps"}}, .unit = "ns"}, team.series(1),
                  shm ? "bare futex" : network.bare_name + ", asleep", team.series(0));
}

std::vector<Result> be_idle(const RealNetwork& network, const Effort& effort) {
  return {cpu_use(network, effort), wake_up(network, effort)};
}

}  // namespace

Experiment idle(const RealNetwork& network) {
  return {.name = "idle",
          .title = "what nodes with nothing to do cost, and how long they take to wake up",
          .fabric = network.name,
          .between_hosts = !network.is_shm(),
          .run = on_network(network, be_idle)};
}

}  // namespace dunlin::bench

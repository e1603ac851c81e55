#include <dunlin/run.hpp>

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

Result cpu_use(const Effort& effort) {
  const std::string group = fresh_group();
  const std::uint32_t ms = effort.quick ? 20 : kIdleMs;
  Team team({.processes = kIdlers, .pin = false, .timeout = effort.timeout});
  team.run([&](Member& me) {
    const auto fabric = join(group, kIdlers, me.rank());
    Table<Ball<1>> table(*fabric);
    table.when(all(&Ball<1>::a) == 1).recurrent([] {});
    connect(me, table);
    Loop loop(*fabric, {.wait = Wait::adaptive});
    loop.add(table);
    auto* const percents = reinterpret_cast<double*>(me.arena().data());
    // The first round lets all fall asleep; meeting costs time of its own and is not counted.
    for (std::uint32_t round = 0; round <= effort.rounds; ++round) {
      const double percent = idle_percent(loop, ms);
      std::atomic_ref(percents[me.rank()]).store(percent);
      me.meet();
      double sum = 0;
      for (std::uint32_t r = 0; r < me.size(); ++r) sum += std::atomic_ref(percents[r]).load();
      if (me.rank() == 0 && round > 0) me.record(0, sum);
      me.meet();
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

/// From a write to the answer of a node that was asleep.
Result wake_up(const Effort& effort) {
  const std::string group = fresh_group();
  const std::uint32_t wakes = effort.scaled(200);
  const auto timeout = static_cast<std::uint32_t>(effort.timeout.count());
  Team team({.processes = 2, .timeout = effort.timeout});
  team.run([&](Member& me) {
    const auto fabric = join(group, 2, me.rank());
    PingPong<1> game(me, *fabric);
    connect(me, game.table());
    const auto dunlin = [&]() -> std::optional<double> {
      if (me.rank() == 0) return game.answers_after(kUntilAsleepNs, wakes);
      game.answer_asleep(wakes, timeout);
      return std::nullopt;
    };
    alternate(me, effort.rounds, {[&] { return bare::wake_by_futex(me, wakes); }, dunlin});
  });
  Result result{.name = "idle", .params = {{"what", "waking a node that sleeps"}}, .unit = "ns"};
  compare(result, team.series(1), "bare futex", team.series(0));
  return result;
}

}  // namespace

Experiment idle() {
  return {.name = "idle",
          .title = "what nodes with nothing to do cost, and how long they take to wake up",
          .fabric = "shm",
          .run = [](const Effort& effort) -> std::vector<Result> {
            return {cpu_use(effort), wake_up(effort)};
          }};
}

}  // namespace dunlin::bench

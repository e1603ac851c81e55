#include "bench/harness/bare.hpp"
#include "bench/table/experiments.hpp"

namespace dunlin::bench {
namespace {

Result measured(std::string what, std::span<const double> ns) {
  return {.params = {{"operation", std::move(what)}}, .unit = "ns", .value = summarize(ns)};
}

std::vector<Result> between_processes(const Effort& effort) {
  const Batches spins = effort.plan(100, 200);
  const std::uint32_t wakes = effort.scaled(200);
  Team team({.processes = 2, .timeout = effort.timeout});
  team.run([&](Member& me) {
    alternate(me, effort.rounds,
              {[&] { return bare::ping_pong(me, spins, bare::Spin::pause); },
               [&] { return bare::ping_pong(me, spins, bare::Spin::tight); },
               [&] { return bare::count_in_step(me, spins, bare::Spin::pause); },
               [&] { return bare::wake_by_futex(me, wakes); }});
  });
  return {measured("ping-pong of two lines, pause", team.series(0)),
          measured("ping-pong of two lines, tight", team.series(1)),
          measured("a step of counting on two lines", team.series(2)),
          measured("waking a sleeper by futex", team.series(3))};
}

/// One word of each line over sets of lines that fit in the first, second and third cache.
std::vector<Result> within_one(const Effort& effort) {
  const std::vector<std::size_t> lines{256, 1'000, 8'000, 60'000};
  Team team({.processes = 1, .timeout = effort.timeout});
  team.run([&](Member& me) {
    std::vector<Contender> contenders;
    for (const std::size_t n : lines) {
      const auto loops = static_cast<std::uint32_t>(400'000 / n);
      contenders.emplace_back([&me, &effort, n, loops]() -> std::optional<double> {
        const Batches plan = effort.plan(100, loops);
        return bare::scan_words(plan, me.arena(), n) / static_cast<double>(n);
      });
    }
    alternate(me, effort.rounds, contenders);
  });
  std::vector<Result> results;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    results.push_back(measured("a look at one of " + std::to_string(lines[i]) + " lines",
                               team.series(static_cast<std::uint32_t>(i))));
  }
  return results;
}

}  // namespace

Experiment machine() {
  return {.name = "machine",
          .title = "the limits themselves: plain atomics, without Dunlin",
          .fabric = "none",
          .run = [](const Effort& effort) {
            return joined<Result>(between_processes(effort), within_one(effort));
          }};
}

}  // namespace dunlin::bench

#include "bench/harness/bare.hpp"
#include "bench/table/experiments.hpp"
#include "bench/table/nodes.hpp"
#include "bench/table/ping_pong.hpp"

namespace dunlin::bench {
namespace {

constexpr double kGoal = 1.15;

std::vector<Result> detect(const Effort& effort) {
  const Batches plan = effort.plan(200, 200);
  const std::string group = fresh_group();
  Team team({.processes = 2, .timeout = effort.timeout});
  team.run([&](Member& me) {
    const auto fabric = join(group, 2, me.rank());
    PingPong<1> writes(me, *fabric);
    PingPong<1> reads(me, *fabric, {.name = "pulled", .refresh = Refresh::reads});
    connect(me, writes.table(), reads.table());
    alternate(me, effort.rounds,
              {[&] { return bare::ping_pong(me, plan, bare::Spin::pause); },
               [&] { return writes.round(plan); }, [&] { return reads.round(plan); },
               [&] { return bare::ping_pong(me, plan, bare::Spin::tight); }});
  });
  Result writes{.name = "detection",
                .params = {{"refresh", "writes"}, {"bare spin", "pause"}},
                .unit = "ns",
                .goal = Goal{.on = Goal::On::ratio, .bound = kGoal}};
  compare(writes, team.series(1), "bare ping-pong", team.series(0));
  Result tight{
      .name = "detection", .params = {{"refresh", "writes"}, {"bare spin", "tight"}}, .unit = "ns"};
  compare(tight, team.series(1), "bare ping-pong", team.series(3));
  Result reads{
      .name = "detection", .params = {{"refresh", "reads"}, {"bare spin", "pause"}}, .unit = "ns"};
  compare(reads, team.series(2), "bare ping-pong", team.series(0));
  return {writes, tight, reads};
}

}  // namespace

Experiment detection() {
  return {.name = "detection",
          .title = "from a write to the trigger at the other node, half a round trip",
          .fabric = "shm",
          .run = detect};
}

}  // namespace dunlin::bench

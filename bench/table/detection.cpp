#include "bench/fabric/group.hpp"
#include "bench/harness/bare.hpp"
#include "bench/table/experiments.hpp"
#include "bench/table/nodes.hpp"
#include "bench/table/ping_pong.hpp"

namespace dunlin::bench {
namespace {

constexpr double kDetectionGoal = 1.15;  // on shm

/// Beside a ping-pong of the same processes without Dunlin; on shm of a flag alone, by loops that
/// pause between two looks and by loops that do not.
std::vector<Result> detect(const RealNetwork& network, const Effort& effort) {
  const bool shm = network.is_shm();
  const Batches plan = effort.plan(shm ? 200 : 100, network.trips_per_batch);
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    const auto joined = group.join(me.rank());
    const auto bare = group.bare(me, joined.get());
    if (me.rank() == 0 && !shm) me.note(group.description(*joined));
    PingPong<1> writes(me, *joined);
    PingPong<1> reads(me, *joined, {.name = "pulled", .refresh = Refresh::reads});
    const auto poll = [&] {
      writes.table().poll();
      reads.table().poll();
    };
    connect(me, writes.table(), reads.table());
    std::vector<Contender> contenders{
        [&] {
          return shm ? bare::ping_pong(me, plan, bare::Spin::pause) : bare->one_way(me, plan, 8);
        },
        [&] { return take_turn(me, poll, [&] { return writes.round(plan); }); },
        [&] { return take_turn(me, poll, [&] { return reads.round(plan); }); }};
    if (shm) contenders.emplace_back([&] { return bare::ping_pong(me, plan, bare::Spin::tight); });
    alternate(me, effort.rounds, contenders);
  });
  const auto beside = [&](const char* refresh, std::uint32_t series, const char* spin,
                          std::uint32_t limit) {
    Params params{{"refresh", refresh}};
    if (shm) params.emplace_back("bare spin", spin);
    return compared({.params = params, .unit = "ns"}, team.series(series),
                    shm ? "bare ping-pong" : network.bare_name + ", one way", team.series(limit));
  };
  std::vector<Result> results{beside("writes", 1, "pause", 0)};
  results.front().goal =
      shm ? Goal{.bound = kDetectionGoal} : ratio_goal(network.goals.detection_ratio);
  results.front().note = team.note();
  if (shm) results.push_back(beside("writes", 1, "tight", 3));
  results.push_back(beside("reads", 2, "pause", 0));
  return results;
}

}  // namespace

Experiment detection(const RealNetwork& network) {
  return {.name = "detection",
          .title = "from a write to the trigger at the other node, half a round trip",
          .fabric = network.name,
          .between_hosts = !network.is_shm(),
          .run = on_network(network, detect)};
}

}  // namespace dunlin::bench

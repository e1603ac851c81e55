#include "bench/harness/bare.hpp"
#include "bench/multicast/cast.hpp"
#include "bench/multicast/experiments.hpp"
#include "bench/table/nodes.hpp"

namespace dunlin::bench {
namespace {

constexpr std::size_t kBytes = 8;
constexpr double kGoal = 3;  // bare latencies

struct Figure {
  const char* until;
  const char* mode;
  const char* which;
  std::uint32_t series;
  std::uint32_t limit;
  bool goal;
};

std::vector<Result> latency(const Effort& effort) {
  // Where members share cores, each step may cost a time slice.
  const bool crowded = effort.members > 2;
  const Batches plan = effort.plan(crowded ? 20 : 100, crowded ? 20 : 200);
  const Batches rare{
      .batches = effort.scaled(crowded ? 400 : 20'000), .per_batch = 1, .quantile = 0.99};
  const std::string group = fresh_group();
  Team team({.processes = effort.members, .timeout = effort.timeout});
  team.run([&](Member& me) {
    Cast cast(me, group, me.size());
    auto& ordered = cast.ordered();
    auto& unordered = cast.unordered();
    alternate(me, effort.rounds,
              {[&] { return bare::ping_pong(me, plan, bare::Spin::tight, kBytes); },
               [&] { return cast.one_by_one(ordered, 0, kBytes, plan); },
               [&] { return cast.one_by_one(ordered, 1, kBytes, plan); },
               [&] { return cast.ping_pong(ordered, kBytes, plan); },
               [&] { return cast.ping_pong(unordered, kBytes, plan); },
               [&] { return bare::ping_pong(me, rare, bare::Spin::tight, kBytes); },
               [&] { return cast.one_by_one(ordered, 0, kBytes, rare); }});
  });
  std::vector<Result> results;
  for (const Figure& figure :
       {Figure{"the first sender's own delivery", "ordered", "median", 1, 0, true},
        Figure{"the second sender's own delivery", "ordered", "median", 2, 0, true},
        Figure{"the other's delivery", "ordered", "median", 3, 0, true},
        Figure{"the other's delivery", "unordered", "median", 4, 0, false},
        Figure{"the first sender's own delivery", "ordered", "99 %", 6, 5, false}}) {
    Result result{.name = "latency",
                  .params = {{"members", double(effort.members)},
                             {"mode", figure.mode},
                             {"until", figure.until},
                             {"of", figure.which}},
                  .unit = "ns"};
    if (figure.goal && effort.members == 2)
      result.goal = Goal{.on = Goal::On::ratio, .bound = kGoal};
    compare(result, team.series(figure.series), "bare ping-pong", team.series(figure.limit));
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace

Experiment cast_latency() {
  return {.name = "latency",
          .title = "from a message of 8 bytes to its delivery, in a group that is idle but for it",
          .fabric = "shm",
          .run = latency};
}

}  // namespace dunlin::bench

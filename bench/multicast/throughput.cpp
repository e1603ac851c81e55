#include <fmt/format.h>

#include "bench/multicast/bare_stream.hpp"
#include "bench/multicast/cast.hpp"
#include "bench/multicast/experiments.hpp"
#include "bench/multicast/workload.hpp"
#include "bench/table/nodes.hpp"

namespace dunlin::bench {
namespace {

constexpr double kGoalOfLarge = 0.7;          // of the bare stream, for 10 KB
constexpr double kGoalOfSmall = 5'000'000.0;  // messages a second, for 100 B

struct Setting {
  std::string who;
  std::uint32_t senders;
};

Result result_of(const Setting& setting, std::size_t bytes, const Effort& effort,
                 const std::string& mode) {
  Result result{.name = "throughput",
                .params = {{"bytes", double(bytes)},
                           {"members", double(effort.members)},
                           {"senders", setting.who},
                           {"mode", mode}},
                .unit = "1/s",
                .better = Better::higher};
  if (mode != "ordered" || effort.members != 2) return result;
  if (bytes == 10'000) result.goal = Goal{.on = Goal::On::ratio, .bound = kGoalOfLarge};
  if (bytes == 100) result.goal = Goal{.on = Goal::On::value, .bound = kGoalOfSmall};
  return result;
}

std::vector<Result> measure_throughput(const Effort& effort, const Setting& setting,
                                       std::size_t bytes) {
  const std::string group = fresh_group();
  const std::uint64_t messages = effort.scaled(bytes >= 100'000  ? 2'000
                                               : bytes >= 10'000 ? 20'000
                                               : bytes >= 1'000  ? 100'000
                                                                 : 400'000);
  Team team({.processes = effort.members, .timeout = effort.timeout});
  team.run([&](Member& me) {
    BareStream bare(me, setting.senders, bytes, kRingBytes);
    {
      Cast cast(me, join(group, me.size(), me.rank()), setting.senders);
      alternate(me, effort.rounds,
                {[&] { return bare.round(messages); },
                 [&] { return cast.stream(cast.ordered(), bytes, messages, setting.senders); },
                 [&] { return cast.stream(cast.unordered(), bytes, messages, setting.senders); }});
    }
    note_timed(me, join(group + "-timed", me.size(), me.rank()),
               {.senders = setting.senders, .bytes = bytes}, messages);
  });
  std::vector<Result> results{result_of(setting, bytes, effort, "ordered"),
                              result_of(setting, bytes, effort, "unordered")};
  results[0].note = fmt::format("{} send {} bytes: {}", setting.who, bytes, team.note());
  compare(results[0], team.series(1), "bare stream", team.series(0));
  compare(results[1], team.series(2), "bare stream", team.series(0));
  return results;
}

std::vector<Result> throughput(const Effort& effort) {
  std::vector<Setting> settings{{"all", effort.members}};
  if (effort.members > 2) settings.push_back({"half", effort.members / 2});
  if (effort.members / 2 != 1 || effort.members == 2) settings.push_back({"one", 1});
  std::vector<Result> results;
  for (const Setting& setting : settings) {
    for (const std::size_t bytes : {1UL, 100UL, 1'000UL, 10'000UL, 100'000UL}) {
      if (bytes > largest_in_bare_stream(effort.members)) continue;
      for (Result& result : measure_throughput(effort, setting, bytes))
        results.push_back(std::move(result));
    }
  }
  return results;
}

}  // namespace

Experiment cast_throughput() {
  return {.name = "throughput",
          .title = "messages a second that each member delivers, built in place",
          .fabric = "shm",
          .x = "bytes",
          .run = throughput};
}

}  // namespace dunlin::bench

#include <fmt/format.h>

#include "bench/fabric/group.hpp"
#include "bench/multicast/bare_stream.hpp"
#include "bench/multicast/cast.hpp"
#include "bench/multicast/experiments.hpp"
#include "bench/multicast/workload.hpp"

namespace dunlin::bench {
namespace {

constexpr double kGoalOfLarge = 0.7;          // of the bare stream, a send each, for 10 KB
constexpr double kGoalOfSmall = 5'000'000.0;  // messages a second, for 100 B

struct Setting {
  std::string who;
  std::uint32_t senders;
};

Result result_of(const Setting& setting, std::size_t bytes, const Effort& effort,
                 const std::string& mode) {
  Result result{.params = {{"bytes", double(bytes)},
                           {"members", double(effort.members)},
                           {"senders", setting.who},
                           {"mode", mode}},
                .unit = "1/s"};
  if (mode != "ordered" || effort.members != 2) return result;
  if (bytes == 10'000) result.goal = Goal{.bound = kGoalOfLarge};
  if (bytes == 100) result.goal = Goal{.on = Goal::On::value, .bound = kGoalOfSmall};
  return result;
}

std::vector<Result> measure(const Effort& effort, const Setting& setting, std::size_t bytes) {
  const Group group(real_network("shm"), effort, effort.members);
  const Group timed(real_network("shm"), effort, effort.members);
  const std::uint64_t messages = effort.scaled(bytes >= 100'000  ? 2'000
                                               : bytes >= 10'000 ? 20'000
                                               : bytes >= 1'000  ? 100'000
                                                                 : 400'000);
  Team team(group.team(effort.members));
  team.run([&](Member& me) {
    BareStream bare(me, setting.senders, bytes, kRingBytes);
    {
      Cast cast(me, group.join(me.rank()), setting.senders);
      alternate(me, effort.rounds,
                {[&] { return bare.round(messages); },
                 [&] { return cast.stream(cast.ordered(), bytes, messages, setting.senders); },
                 [&] { return cast.stream(cast.unordered(), bytes, messages, setting.senders); }});
    }
    note_timed(me, timed.join(me.rank()), {.senders = setting.senders, .bytes = bytes}, messages);
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
      append(results, measure(effort, setting, bytes));
    }
  }
  return results;
}

// --- over a network, beside streams over bare connections to the same receiver -------------------

constexpr std::uint32_t kMembers = 2;
constexpr std::uint32_t kStreamBytes = 65'536;  // in a send, where it is not a message each

std::optional<double> per_second(std::optional<double> ns) {
  return ns ? std::optional(1e9 / *ns) : std::nullopt;
}

/// A result, by the series of the team.
struct Figure {
  const char* senders;
  const char* mode;
  const char* limit;
  std::uint32_t series;
  std::uint32_t of_limit;
  std::optional<double> goal;
};

std::vector<Result> measure_over(const RealNetwork& network, const Effort& effort,
                                 std::size_t bytes) {
  const Group group(network, effort, kMembers);
  const Group timed(network, effort, kMembers);
  const std::uint32_t messages = effort.scaled(bytes >= 10'000 ? 5'000 : 100'000);
  const std::uint32_t at_once = kStreamBytes / static_cast<std::uint32_t>(bytes);
  Team team(group.team(kMembers));
  team.run([&](Member& me) {
    {
      auto joined = group.join(me.rank());
      const auto bare = group.bare(me, joined.get());
      Cast all(me, std::move(joined), kMembers);
      const auto stream = [&](Cast::Subgroup& subgroup, std::uint32_t senders) {
        return all.stream(subgroup, bytes, messages, senders);
      };
      alternate(me, effort.rounds,
                {[&] { return per_second(bare->stream(me, bytes, messages, 1)); },
                 [&] { return per_second(bare->stream(me, bytes, messages, at_once)); },
                 [&] { return per_second(bare->stream_both_ways(me, bytes, messages, 1)); },
                 [&] { return per_second(bare->stream_both_ways(me, bytes, messages, at_once)); },
                 [&] { return stream(all.ordered(), 1); },
                 [&] { return stream(all.ordered(), kMembers); },
                 [&] { return stream(all.unordered(), 1); }});
    }
    note_timed(me, timed.join(me.rank()), {.senders = kMembers, .bytes = bytes}, messages);
  });
  const std::optional<double> goal = bytes == 10'000 ? std::optional(kGoalOfLarge) : std::nullopt;
  const std::optional<double> of_filled = bytes == 10'000 ? network.goals.cast_10k_ratio
                                          : bytes == 100  ? network.goals.cast_100_ratio
                                                          : std::nullopt;
  std::vector<Result> results;
  for (const Figure& figure : {Figure{"one", "ordered", "a send each", 4, 0, goal},
                               Figure{"one", "ordered", "64 KB a send", 4, 1, of_filled},
                               Figure{"all", "ordered", "a send each, both ways", 5, 2, goal},
                               Figure{"all", "ordered", "64 KB a send, both ways", 5, 3, {}},
                               Figure{"one", "unordered", "a send each", 6, 0, {}}}) {
    results.push_back(compared({.params = {{"bytes", double(bytes)},
                                           {"members", double(kMembers)},
                                           {"senders", figure.senders},
                                           {"mode", figure.mode}},
                                .unit = "1/s",
                                .goal = ratio_goal(figure.goal)},
                               team.series(figure.series), network.bare_name + ", " + figure.limit,
                               team.series(figure.of_limit)));
  }
  results.front().note = to_text(ParamValue(double(bytes))) + " bytes, all: " + team.note();
  return results;
}

}  // namespace

Experiment cast_throughput(const RealNetwork& network) {
  Experiment experiment{
      .name = "throughput",
      .title = "messages a second that each member delivers, built in place",
      .fabric = network.name,
      .x = "bytes",
      .run = on_network(network, for_settings({100UL, 1'000UL, 10'000UL}, measure_over))};
  if (network.is_shm()) experiment.run = throughput;
  return experiment;
}

}  // namespace dunlin::bench

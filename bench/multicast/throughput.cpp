#include <fmt/format.h>

#include "bench/multicast/bare_stream.hpp"
#include "bench/multicast/cast.hpp"
#include "bench/multicast/experiments.hpp"
#include "bench/table/nodes.hpp"

namespace dunlin::bench {
namespace {

constexpr double kGoalOfLarge = 0.7;          // of the bare stream, for 10 KB
constexpr double kGoalOfSmall = 5'000'000.0;  // messages a second, for 100 B

/// What the stages handled at once, and what was posted for it.
std::string told(const multicast::Counters& c) {
  const auto ratio = [](std::uint64_t of, std::uint64_t to) {
    return to == 0 ? 0.0 : static_cast<double>(of) / static_cast<double>(to);
  };
  return fmt::format(
      "batches of {:.0f} sent, {:.0f} received, {:.0f} delivered; {:.3f} writes a "
      "message delivered, {:.2f} nulls",
      ratio(c.records_announced, c.send_batches), ratio(c.turns_received, c.receive_batches),
      ratio(c.messages_delivered, c.deliver_batches),
      ratio(c.puts + c.pushes, c.messages_delivered), ratio(c.nulls, c.messages_delivered));
}

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

std::vector<Result> measure(const Effort& effort, const Setting& setting, std::size_t bytes) {
  const std::string group = fresh_group();
  const std::uint64_t messages = effort.scaled(bytes >= 10'000  ? 20'000
                                               : bytes >= 1'000 ? 100'000
                                                                : 400'000);
  Team team({.processes = effort.members, .timeout = effort.timeout});
  team.run([&](Member& me) {
    BareStream bare(me, setting.senders, bytes, kRingBytes);
    Cast cast(me, group, setting.senders);
    alternate(me, effort.rounds,
              {[&] { return bare.round(messages); },
               [&] { return cast.stream(cast.ordered(), bytes, messages); },
               [&] { return cast.stream(cast.unordered(), bytes, messages); }});
    if (me.rank() == 0) me.note(told(cast.ordered().epoch->counters()));
  });
  std::vector<Result> results{result_of(setting, bytes, effort, "ordered"),
                              result_of(setting, bytes, effort, "unordered")};
  results[0].note = team.note();
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
    for (const std::size_t bytes : {1UL, 100UL, 1'000UL, 10'000UL}) {
      for (Result& result : measure(effort, setting, bytes)) results.push_back(std::move(result));
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

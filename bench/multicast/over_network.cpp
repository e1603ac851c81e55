#include "bench/fabric/group.hpp"
#include "bench/multicast/cast.hpp"
#include "bench/multicast/experiments.hpp"
#include "bench/multicast/workload.hpp"

/// Throughput over a network, beside streams over bare connections to the same receiver.
namespace dunlin::bench {
namespace {

constexpr double kGoal = 0.7;  // of the bare stream of messages, a send each, for 10 KB
constexpr std::uint32_t kMembers = 2;
constexpr std::uint32_t kStreamBytes = 65'536;  // in a send, where it is not a message each

std::optional<double> per_second(std::optional<double> ns) {
  return ns ? std::optional(1e9 / *ns) : std::nullopt;
}

struct Figure {
  const char* senders;
  const char* mode;
  const char* limit;
  std::uint32_t series;
  std::uint32_t of_limit;
  std::optional<double> goal;
};

std::vector<Result> measure_over_network(const RealNetwork& network, const Effort& effort,
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
  const std::optional<double> goal = bytes == 10'000 ? std::optional(kGoal) : std::nullopt;
  const std::optional<double> of_filled = bytes == 10'000 ? network.goals.cast_10k_ratio
                                          : bytes == 100  ? network.goals.cast_100_ratio
                                                          : std::nullopt;
  std::vector<Result> results;
  for (const Figure& figure : {Figure{"one", "ordered", "a send each", 4, 0, goal},
                               Figure{"one", "ordered", "64 KB a send", 4, 1, of_filled},
                               Figure{"all", "ordered", "a send each, both ways", 5, 2, goal},
                               Figure{"all", "ordered", "64 KB a send, both ways", 5, 3, {}},
                               Figure{"one", "unordered", "a send each", 6, 0, {}}}) {
    Result result{.name = "throughput",
                  .params = {{"bytes", double(bytes)},
                             {"members", double(kMembers)},
                             {"senders", figure.senders},
                             {"mode", figure.mode}},
                  .unit = "1/s",
                  .better = Better::higher};
    if (figure.goal) result.goal = Goal{.on = Goal::On::ratio, .bound = *figure.goal};
    compare(result, team.series(figure.series), network.bare_name + ", " + figure.limit,
            team.series(figure.of_limit));
    results.push_back(std::move(result));
  }
  results.front().note = to_text(ParamValue(double(bytes))) + " bytes, all: " + team.note();
  return results;
}

std::vector<Result> throughput(const RealNetwork& network, const Effort& effort) {
  std::vector<Result> results;
  for (const std::size_t bytes : {100UL, 1'000UL, 10'000UL})
    for (Result& result : measure_over_network(network, effort, bytes))
      results.push_back(std::move(result));
  return results;
}

}  // namespace

std::vector<Experiment> casts_over_networks() {
  std::vector<Experiment> all;
  for (const RealNetwork& network : real_networks()) {
    if (!network.both_ways) continue;
    all.push_back({.name = "throughput",
                   .title = "messages a second that each member delivers, built in place",
                   .fabric = network.name,
                   .x = "bytes",
                   .run = [&network](const Effort& e) { return throughput(network, e); }});
    all.push_back(cast_latency(network));
  }
  return all;
}

}  // namespace dunlin::bench

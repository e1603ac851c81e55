#include <array>

#include "bench/fabric/group.hpp"
#include "bench/topic/experiments.hpp"
#include "bench/topic/measured_topic.hpp"

namespace dunlin::bench {
namespace {

constexpr double kGoal = 1.15;  // of the bare multicast's
constexpr std::size_t kBytes = 64;

std::vector<Result> latency(const Effort& effort) {
  const bool crowded = effort.members > 2;
  const std::uint32_t trips = effort.scaled(crowded ? 400 : 20'000);
  struct Row {
    const char* of;
    Batches plan;
  };
  // Quantiles of rare trips are those of single trips.
  const std::array rows{Row{"median", effort.plan(crowded ? 20 : 100, crowded ? 20 : 200)},
                        Row{"99 %", {.batches = trips, .per_batch = 1, .quantile = 0.99}},
                        Row{"99.9 %", {.batches = trips, .per_batch = 1, .quantile = 0.999}}};
  const Group group(real_network("shm"), effort, effort.members);
  const Group of_topics(real_network("shm"), effort, effort.members);
  Team team(group.team(effort.members));
  team.run([&](Member& me) {
    Cast cast(me, group.join(me.rank()), me.size());
    TopicNode node(me, of_topics.join(me.rank()));
    const auto topics = make_topics<Blob<kBytes>>(node, "atomic", 1,
                                                  measured_qos(pubsub::Level::atomic), me.size());
    std::vector<Contender> contenders;
    for (const Row& row : rows) {
      contenders.emplace_back([&] { return cast.ping_pong(cast.ordered(), kBytes, row.plan); });
      contenders.emplace_back([&] { return ping_pong(node, *topics.front(), row.plan); });
    }
    alternate(me, effort.rounds, contenders);
  });
  std::vector<Result> results;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    results.push_back(
        compared({.params = {{"bytes", double(kBytes)},
                             {"members", double(effort.members)},
                             {"of", rows.at(i).of}},
                  .unit = "ns",
                  .goal = crowded ? std::nullopt : std::optional(Goal{.bound = kGoal})},
                 team.series(2 * i + 1), "multicast", team.series(2 * i)));
  }
  return results;
}

}  // namespace

Experiment topic_latency() {
  return {.name = "latency",
          .title = "from a sample to the other member's reader, in an idle group",
          .fabric = "shm",
          .run = latency};
}

}  // namespace dunlin::bench

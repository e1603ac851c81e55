#include <filesystem>
#include <string>

#include "bench/fabric/group.hpp"
#include "bench/harness/folder.hpp"
#include "bench/multicast/workload.hpp"
#include "bench/topic/experiments.hpp"
#include "bench/topic/measured_topic.hpp"

/// One writer that writes as fast as it can, at each level, beside the multicast below it.
namespace dunlin::bench {
namespace {

using pubsub::Level;

constexpr double kGoal = 0.9;
constexpr std::uint32_t kMostWithGoal = 4;  // members

template <std::size_t Bytes>
void measure_stream(const Effort& effort, std::uint32_t full, std::vector<Result>& results) {
  const std::uint64_t samples = effort.scaled(full);
  const Group group(real_network("shm"), effort, effort.members);
  const Group of_topics(real_network("shm"), effort, effort.members);
  Team team(group.team(effort.members));
  team.run([&](Member& me) {
    Cast cast(me, group.join(me.rank()), 1);
    TopicNode node(me, of_topics.join(me.rank()));
    const auto topics_of = [&](Level level) {
      return make_topics<Blob<Bytes>>(node, std::string(describe(level)), 1, measured_qos(level),
                                      1);
    };
    const auto unordered = topics_of(Level::unordered), atomic = topics_of(Level::atomic),
               stored = topics_of(Level::volatile_storage);
    alternate(me, effort.rounds,
              {[&] { return cast.stream(cast.unordered(), Bytes, samples, 1); },
               [&] { return cast.stream(cast.ordered(), Bytes, samples, 1); },
               [&] {
                 cast.store_last(kStoredSamples);
                 const auto rate = cast.stream(cast.ordered(), Bytes, samples, 1);
                 cast.store_last(0);
                 return rate;
               },
               [&] { return stream<Blob<Bytes>>(node, unordered, samples); },
               [&] { return stream<Blob<Bytes>>(node, atomic, samples); },
               [&] { return stream<Blob<Bytes>>(node, stored, samples); }});
  });
  struct Row {
    Level level;
    std::uint32_t series, limit;
    const char* limit_name;
  };
  const auto goal =
      effort.members <= kMostWithGoal ? std::optional(Goal{.bound = kGoal}) : std::nullopt;
  for (const Row& row :
       {Row{Level::unordered, 3, 0, "unordered multicast"}, Row{Level::atomic, 4, 1, "multicast"},
        Row{Level::volatile_storage, 5, 2, "multicast, and a copy"}}) {
    results.push_back(compared({.params = {{"bytes", double(Bytes)},
                                           {"members", double(effort.members)},
                                           {"level", std::string(describe(row.level))}},
                                .unit = "1/s",
                                .goal = goal},
                               team.series(row.series), row.limit_name, team.series(row.limit)));
  }
}

std::vector<Result> throughput(const Effort& effort) {
  std::vector<Result> results;
  measure_stream<1>(effort, 400'000, results);
  measure_stream<64>(effort, 400'000, results);
  measure_stream<1'000>(effort, 100'000, results);
  measure_stream<10'000>(effort, 20'000, results);
  measure_stream<100'000>(effort, 2'000, results);
  return results;
}

template <std::size_t Bytes>
Result measure_logged(const Effort& effort, std::uint32_t full) {
  const std::uint64_t samples = effort.scaled(full);
  const Folder folder;
  const Group group(real_network("shm"), effort, effort.members);
  const Group of_topics(real_network("shm"), effort, effort.members);
  Team team(group.team(effort.members));
  team.run([&](Member& me) {
    const std::string name = std::to_string(me.rank());
    std::filesystem::create_directory(folder / ("topic" + name));
    Workload workload(
        me, group.join(me.rank()),
        {.senders = 1, .bytes = Bytes, .log_directory = folder / ("multicast" + name)});
    pubsub::ParticipantOptions options{.log_directory = folder / ("topic" + name)};
    for (std::uint32_t rank = 0; rank < me.size(); ++rank)
      options.log_founders.push_back(std::to_string(rank));  // members without names
    TopicNode node(me, of_topics.join(me.rank()), options);
    const auto topics = make_topics<Blob<Bytes>>(node, "logged", 1, measured_qos(Level::logged), 1);
    alternate(me, effort.rounds,
              {[&] { return workload.round(samples); },
               [&] { return stream<Blob<Bytes>>(node, topics, samples); }});
  });
  return compared({.params = {{"bytes", double(Bytes)}, {"members", double(effort.members)}},
                   .unit = "1/s",
                   .goal = Goal{.bound = kGoal}},
                  team.series(1), "durable multicast", team.series(0));
}

}  // namespace

Experiment topic_throughput() {
  return {.name = "throughput",
          .title = "samples a second of one writer, built and seen in place",
          .fabric = "shm",
          .x = "bytes",
          .run = throughput};
}

Experiment logged_throughput() {
  return {.name = "logged",
          .title = "the same, in the logs of all members before a reader is given them",
          .fabric = "shm",
          .x = "bytes",
          .run = [](const Effort& effort) {
            return std::vector{measure_logged<64>(effort, 20'000),
                               measure_logged<1'000>(effort, 10'000),
                               measure_logged<10'000>(effort, 1'000)};
          }};
}

}  // namespace dunlin::bench

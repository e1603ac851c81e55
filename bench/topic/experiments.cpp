#include "bench/topic/experiments.hpp"

#include <memory>

#include <CLI/CLI.hpp>

#include "bench/harness/suite.hpp"
#include "bench/table/nodes.hpp"
#include "bench/topic/topic_cast.hpp"
#include "standard_output.hpp"

namespace dunlin::bench {
namespace {

constexpr double kGoalOfRate = 0.9;      // of the bare multicast's
constexpr double kGoalOfLatency = 1.15;  // likewise

template <std::size_t Bytes>
void measure_stream(const Effort& effort, std::uint32_t full, std::vector<Result>& results) {
  const std::uint64_t samples = effort.scaled(full);
  const std::string group = fresh_group();
  Team team({.processes = effort.members, .timeout = effort.timeout});
  team.run([&](Member& me) {
    Cast cast(me, join(group, me.size(), me.rank()), 1);
    TopicCast<Bytes> topics(me, join(group + "-topics", me.size(), me.rank()));
    alternate(me, effort.rounds,
              {[&] { return cast.stream(cast.unordered(), Bytes, samples, 1); },
               [&] { return cast.stream(cast.ordered(), Bytes, samples, 1); },
               [&] { return topics.stream(topics.unordered(), samples); },
               [&] { return topics.stream(topics.atomic(), samples); },
               [&] { return topics.stream(topics.stored(), samples); }});
  });
  struct Row {
    const char* level;
    std::uint32_t series, limit;
    bool goal;
  };
  for (const Row& row : {Row{"unordered", 2, 0, true}, Row{"atomic", 3, 1, true},
                         Row{"volatile_storage", 4, 1, false}}) {
    Result result{.name = "throughput",
                  .params = {{"bytes", double(Bytes)},
                             {"members", double(effort.members)},
                             {"level", row.level}},
                  .unit = "1/s",
                  .better = Better::higher};
    if (row.goal && effort.members == 2)
      result.goal = Goal{.on = Goal::On::ratio, .bound = kGoalOfRate};
    compare(result, team.series(row.series), "multicast", team.series(row.limit));
    results.push_back(std::move(result));
  }
}

std::vector<Result> throughput(const Effort& effort) {
  std::vector<Result> results;
  measure_stream<64>(effort, 400'000, results);
  measure_stream<1'000>(effort, 100'000, results);
  measure_stream<10'000>(effort, 20'000, results);
  return results;
}

std::vector<Result> latency(const Effort& effort) {
  constexpr std::size_t kBytes = 64;
  const bool crowded = effort.members > 2;
  const Batches plan = effort.plan(crowded ? 20 : 100, crowded ? 20 : 200);
  const std::string group = fresh_group();
  Team team({.processes = effort.members, .timeout = effort.timeout});
  team.run([&](Member& me) {
    Cast cast(me, join(group, me.size(), me.rank()), me.size());
    TopicCast<kBytes> topics(me, join(group + "-topics", me.size(), me.rank()));
    alternate(me, effort.rounds,
              {[&] { return cast.ping_pong(cast.ordered(), kBytes, plan); },
               [&] { return topics.ping_pong(topics.atomic(), plan); }});
  });
  Result result{.name = "latency",
                .params = {{"bytes", double(kBytes)},
                           {"members", double(effort.members)},
                           {"level", "atomic"}},
                .unit = "ns"};
  if (effort.members == 2) result.goal = Goal{.on = Goal::On::ratio, .bound = kGoalOfLatency};
  compare(result, team.series(1), "multicast", team.series(0));
  return {result};
}

}  // namespace

const std::vector<Experiment>& topic_experiments() {
  static const std::vector<Experiment> experiments{
      {.name = "throughput",
       .title = "samples a second of one writer, built and seen in place",
       .fabric = "shm",
       .x = "bytes",
       .run = throughput},
      {.name = "latency",
       .title = "from a sample to the other member's reader, in an idle group",
       .fabric = "shm",
       .run = latency}};
  return experiments;
}

void add_topic_suite(CLI::App& bench) {
  CLI::App* command =
      bench.add_subcommand("topic", "Topics beside the bare multicast: throughput and latency");
  const auto options = std::make_shared<SuiteOptions>();
  add_options(*command, *options);
  command
      ->add_option("--members", options->effort.members,
                   "Of a group on shared memory; 2 if not given")
      ->check(CLI::Range(2U, 16U));
  command->callback([options] { run_suite(topic_experiments(), *options, app::say); });
}

}  // namespace dunlin::bench

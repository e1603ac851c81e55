#include "bench/table/nodes.hpp"
#include "bench/topic/ddsperf.hpp"
#include "bench/topic/experiments.hpp"
#include "bench/topic/measured_topic.hpp"

/// Topics beside other people's DDS.
namespace dunlin::bench {
namespace {

constexpr double kGoalOfLatency = 0.2;
constexpr std::chrono::seconds kEach{3};

/// A round of ours: each call adds one to both series of the team.
template <std::size_t Bytes>
void our_round(Team& team, const Effort& effort, std::uint64_t samples) {
  const Batches plan = effort.plan(100, 100);
  const std::string group = fresh_group();
  team.run([&](Member& me) {
    TopicNode node(me, join(group, me.size(), me.rank()));
    const auto topics =
        make_topics<Blob<Bytes>>(node, "atomic", 1, measured_qos(pubsub::Level::atomic), 2);
    alternate(me, 1,
              {[&] { return stream<Blob<Bytes>>(node, topics, samples); },
               [&] { return ping_pong(node, *topics.front(), plan); }});
  });
}

template <std::size_t Bytes>
void measure(const Effort& effort, double goal_of_rate, std::vector<Result>& results) {
  const std::uint64_t samples = effort.scaled(Bytes >= 10'000 ? 20'000 : 200'000);
  const std::string missing = DdsPerf::missing();
  const DdsPerf ddsperf(effort.quick ? std::chrono::seconds(2) : kEach);
  Team team({.processes = 2, .timeout = effort.timeout});
  std::vector<double> rates, latencies;
  for (std::uint32_t round = 0; round < effort.rounds; ++round) {
    our_round<Bytes>(team, effort, samples);
    if (!missing.empty() || (effort.quick && round > 0)) continue;
    rates.push_back(ddsperf.samples_per_second(Bytes));
    latencies.push_back(ddsperf.latency_ns(Bytes));
  }
  for (const bool rate : {true, false}) {
    const std::vector<double>& theirs = rate ? rates : latencies;
    Result result{
        .name = "peers",
        .params = {{"bytes", double(Bytes)}, {"what", rate ? "samples a second" : "latency"}},
        .unit = rate ? "1/s" : "ns",
        .better = rate ? Better::higher : Better::lower,
        .goal = Goal{.bound = rate ? goal_of_rate : kGoalOfLatency},
        .note = missing};
    const auto ours = team.series(rate ? 0 : 1);
    result.value = summarize(ours);
    if (!theirs.empty())
      compare(result, ours.first(theirs.size()), "Cyclone DDS, UDP on loopback", theirs);
    results.push_back(std::move(result));
  }
}

}  // namespace

Experiment dds_peers() {
  return {.name = "peers",
          .title = "one writer and one reader in two processes, beside ddsperf of Cyclone DDS",
          .fabric = "shm",
          .x = "bytes",
          .run = [](const Effort& effort) {
            std::vector<Result> results;
            measure<64>(effort, 10, results);
            if (effort.quick) return results;
            measure<1'000>(effort, 10, results);
            measure<10'000>(effort, 1, results);
            return results;
          }};
}

}  // namespace dunlin::bench

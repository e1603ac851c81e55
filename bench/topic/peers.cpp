#include <dunlin/error.hpp>

#include "bench/table/nodes.hpp"
#include "bench/topic/dds_peers.hpp"
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

struct Theirs {
  DdsPeer peer;
  std::vector<double> rates = {};
  std::vector<double> latencies = {};
};

/// On a busy machine a reader may get nothing in time, and prints no rate then.
void their_round(Theirs& theirs, std::size_t bytes, std::chrono::seconds each) {
  constexpr std::size_t kMostOfItsOutput = 300;
  try {
    theirs.rates.push_back(samples_per_second(theirs.peer, bytes, each));
    theirs.latencies.push_back(latency_ns(theirs.peer, bytes, each));
  } catch (const Error& error) {
    theirs.peer.missing = theirs.peer.name + " was not measured in all rounds: " +
                          std::string(error.what()).substr(0, kMostOfItsOutput);
  }
}

template <std::size_t Bytes>
void measure(const Effort& effort, double goal_of_rate, std::vector<Result>& results) {
  const std::uint64_t samples = effort.scaled(Bytes >= 10'000 ? 20'000 : 200'000);
  std::vector<Theirs> all;
  for (DdsPeer& peer : dds_peers_on_this_host()) all.push_back({.peer = std::move(peer)});
  const std::chrono::seconds each = effort.quick ? std::chrono::seconds(2) : kEach;
  Team team({.processes = 2, .timeout = effort.timeout});
  for (std::uint32_t round = 0; round < effort.rounds; ++round) {
    our_round<Bytes>(team, effort, samples);
    if (effort.quick && round > 0) continue;
    for (Theirs& theirs : all) {
      if (theirs.peer.missing.empty()) their_round(theirs, Bytes, each);
    }
  }
  for (const Theirs& theirs : all) {
    results.push_back(
        beside(theirs.peer, Bytes, Compared::rate, team.series(0), theirs.rates, goal_of_rate));
    results.push_back(beside(theirs.peer, Bytes, Compared::latency, team.series(1),
                             theirs.latencies, kGoalOfLatency));
  }
}

}  // namespace

Experiment dds_peers() {
  return {.name = "peers",
          .title = "one writer and one reader in two processes, beside Cyclone DDS and Fast DDS",
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

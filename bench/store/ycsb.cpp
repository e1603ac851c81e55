#include "bench/store/ycsb.hpp"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "bench/store/experiments.hpp"
#include "bench/store/peers.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kRecords = 20'000;
constexpr std::uint64_t kSeed = 7;

/// How the client makes its calls. The peers know no difference between single calls at once and a
/// batch: they have one row beside both.
struct Manner {
  std::string name;
  std::size_t at_once;
  std::size_t of_peers;  // the number of the peers' manner
  void (OurRecords::*make)(std::span<const YcsbCall> calls);
};
const std::array<Manner, 3> kManners{
    {{"single calls", 1, 0, &OurRecords::make_each},
     {"single calls", StorePair::kAtOnce, 1, &OurRecords::make_each},
     {"a batch", StorePair::kAtOnce, 1, &OurRecords::make_batch}}};
constexpr std::array<std::size_t, 2> kAtOnceOfPeers{1, StorePair::kAtOnce};

constexpr std::size_t kOurSeries = kYcsbWorkloads.size() * kManners.size();
static_assert(kOurSeries <= kMaxSeries);

[[nodiscard]] Batches plan_of(const Effort& effort, std::size_t at_once) {
  return effort.plan(50, at_once == 1 ? 100 : 20);
}

/// A round of ours in two processes; adds one to each series of the team.
void our_round(Team& team, const Group& group, const Effort& effort, std::uint32_t records) {
  team.run([&](Member& me) {
    OurRecords ours(me, group, records);
    std::vector<std::unique_ptr<YcsbCalls>> calls;
    std::vector<Contender> contenders;
    for (const YcsbWorkload& workload : kYcsbWorkloads) {
      YcsbCalls& of_this =
          *calls.emplace_back(std::make_unique<YcsbCalls>(workload, records, kSeed));
      for (const Manner& manner : kManners)
        contenders.emplace_back([&] {
          const auto make = [&](std::span<const YcsbCall> these) { (ours.*manner.make)(these); };
          return ours.pair().turn([&] {
            return calls_per_second(make, of_this, plan_of(effort, manner.at_once), manner.at_once);
          });
        });
    }
    alternate(me, 1, contenders);
  });
}

/// What the rounds of a peer gave, for each workload by how many calls there are at once.
struct PeerSeries {
  Peer peer;
  std::vector<YcsbCalls> calls = {};
  std::array<std::array<std::vector<double>, kAtOnceOfPeers.size()>, kYcsbWorkloads.size()> series =
      {};

  void measure_round(const Effort& effort) {
    for (std::size_t workload = 0; peer.make && workload < kYcsbWorkloads.size(); ++workload)
      for (std::size_t i = 0; i < kAtOnceOfPeers.size(); ++i)
        series[workload][i].push_back(calls_per_second(
            peer.make, calls[workload], plan_of(effort, kAtOnceOfPeers[i]), kAtOnceOfPeers[i]));
  }
};

std::vector<PeerSeries> load_peer_series(std::uint32_t records) {
  std::vector<PeerSeries> all;
  for (Peer& peer : load_peers(records)) {
    PeerSeries& loaded = all.emplace_back(PeerSeries{.peer = std::move(peer)});
    for (const YcsbWorkload& workload : kYcsbWorkloads)
      loaded.calls.emplace_back(workload, records, kSeed);
  }
  return all;
}

Result compare_with(const PeerSeries& theirs, std::size_t workload, const Manner& manner,
                    std::span<const double> ours) {
  return compared({.params = {{"workload", std::string(kYcsbWorkloads[workload].name)},
                              {"at once", double(manner.at_once)},
                              {"ours", manner.name}},
                   .unit = "1/s",
                   .goal = Goal{.bound = 1},
                   .note = theirs.peer.missing},
                  ours, theirs.peer.name, theirs.series[workload][manner.of_peers]);
}

std::vector<Result> measure_ycsb(const Effort& effort) {
  const std::uint32_t records = effort.scaled(kRecords);
  std::vector<PeerSeries> all = load_peer_series(records);
  Team team({.processes = 2, .timeout = effort.timeout});
  for (std::uint32_t round = 0; round < effort.rounds; ++round) {
    our_round(team, Group(real_network("shm"), effort), effort, records);
    for (PeerSeries& theirs : all) theirs.measure_round(effort);
  }
  std::vector<Result> results;
  for (std::size_t workload = 0; workload < kYcsbWorkloads.size(); ++workload)
    for (std::size_t manner = 0; manner < kManners.size(); ++manner) {
      const auto series = static_cast<std::uint32_t>(workload * kManners.size() + manner);
      for (const PeerSeries& theirs : all)
        results.push_back(compare_with(theirs, workload, kManners.at(manner), team.series(series)));
    }
  return results;
}

}  // namespace

Experiment store_ycsb() {
  return {.name = "ycsb",
          .title =
              "YCSB's workloads, records of 1,000 bytes, Zipf 0.99: one client, beside Redis and "
              "memcached over UNIX sockets, and LMDB in memory without syncs",
          .fabric = "shm",
          .run = measure_ycsb};
}

}  // namespace dunlin::bench

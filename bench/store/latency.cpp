#include <array>
#include <string>
#include <vector>

#include "bench/store/experiments.hpp"
#include "bench/store/peers.hpp"

/// How long a client waits for a call if it makes one at a time, beside other people's stores.
namespace dunlin::bench {
namespace {

constexpr std::uint32_t kRecords = 20'000;
constexpr std::uint32_t kCalls = 20'000;  // in a round, each timed
constexpr std::uint64_t kSeed = 7;

constexpr std::array kKinds{YcsbWorkload{"get", "reads", 1, 0, 0, 0},
                            YcsbWorkload{"put", "updates", 0, 1, 0, 0}};
struct Quantile {
  const char* name;
  double at;
};
constexpr std::array kQuantiles{Quantile{"median", 0.5}, Quantile{"p99", 0.99}};

/// A series for each kind and quantile.
template <class Use>
void for_each_series(const Use& use) {
  std::uint32_t series = 0;
  for (const YcsbWorkload& kind : kKinds)
    for (const Quantile& quantile : kQuantiles) use(series++, kind, quantile);
}

/// The calls are drawn before the clock is read.
double wait_ns(const MakeCalls& make, const Effort& effort, const YcsbWorkload& kind,
               const Quantile& quantile, std::uint32_t records) {
  const Batches plan{.batches = effort.scaled(kCalls), .per_batch = 1, .quantile = quantile.at};
  YcsbCalls drawn(kind, records, kSeed);
  std::vector<YcsbCall> calls(plan.batches);
  for (YcsbCall& call : calls) call = drawn.next();
  std::size_t next = 0;
  return batch_ns(plan, [&] { make(std::span(calls).subspan(next++, 1)); });
}

/// Adds one to each series of the team.
void our_round(Team& team, const Group& group, const Effort& effort, std::uint32_t records) {
  team.run([&](Member& me) {
    OurRecords ours(me, group, records);
    const auto make = [&](std::span<const YcsbCall> calls) { ours.make_each(calls); };
    std::vector<Contender> contenders;
    for_each_series([&](std::uint32_t, const YcsbWorkload& kind, const Quantile& quantile) {
      contenders.emplace_back([&] {
        return ours.pair().turn([&] { return wait_ns(make, effort, kind, quantile, records); });
      });
    });
    alternate(me, 1, contenders);
  });
}

struct PeerSeries {
  Peer peer;
  std::array<std::vector<double>, kKinds.size() * kQuantiles.size()> series = {};
};

std::vector<Result> measure_latency(const Effort& effort) {
  const std::uint32_t records = effort.scaled(kRecords);
  std::vector<PeerSeries> peers;
  for (Peer& peer : load_peers(records)) peers.push_back({.peer = std::move(peer)});
  Team team({.processes = 2, .timeout = effort.timeout});
  for (std::uint32_t round = 0; round < effort.rounds; ++round) {
    our_round(team, Group(real_network("shm"), effort), effort, records);
    for (PeerSeries& theirs : peers)
      for_each_series([&](std::uint32_t i, const YcsbWorkload& kind, const Quantile& quantile) {
        if (theirs.peer.make)
          theirs.series.at(i).push_back(wait_ns(theirs.peer.make, effort, kind, quantile, records));
      });
  }
  std::vector<Result> results;
  for_each_series([&](std::uint32_t i, const YcsbWorkload& kind, const Quantile& quantile) {
    for (const PeerSeries& theirs : peers) {
      results.push_back(
          compared({.params = {{"call", std::string(kind.name)}, {"quantile", quantile.name}},
                    .unit = "ns",
                    .goal = Goal{.bound = 1},
                    .note = theirs.peer.missing},
                   team.series(i), theirs.peer.name, theirs.series.at(i)));
    }
  });
  return results;
}

}  // namespace

Experiment store_latency() {
  return {.name = "latency",
          .title =
              "One get or put after the other, 1,000 bytes, Zipf 0.99: what a client waits for it, "
              "beside Redis, memcached and LMDB",
          .fabric = "shm",
          .run = measure_latency};
}

}  // namespace dunlin::bench

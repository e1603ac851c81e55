#include <array>
#include <span>

#include "bench/harness/mpi.hpp"
#include "bench/harness/neighbour.hpp"
#include "bench/segment/experiments.hpp"
#include "bench/segment/segment_node.hpp"

namespace dunlin::bench {
namespace {

constexpr std::array<std::size_t, 3> kSizes{8, 1024, 65'536};

/// What Dunlin does, in the order of the team's series.
enum Ours : std::uint32_t { null_get, null_put, fetch_and_add, lock_unlock, write_get, write_put };
constexpr std::uint32_t kOurs = 6;

/// A round of ours in two processes; each call adds one to the team's series.
void our_round(Team& team, const Effort& effort, const Batches& plan, std::size_t bytes) {
  const Group group(real_network("shm"), effort);
  team.run([&](Member& me) {
    SegmentPair pair(me, group);
    SegmentSpace& space = pair.space();
    const Key null = pair.make({.bytes = bytes, .coherence = Coherence::null});
    const Key whole = pair.make({.bytes = bytes, .coherence = Coherence::write});
    std::vector<std::uint64_t> words(bytes / 8);
    const auto memory = std::as_writable_bytes(std::span(words));
    const auto get = [&](Key key) {
      auto operation = space.get(key, memory);
      demand(operation);
    };
    const auto put = [&](Key key) {
      auto operation = space.put(key, memory);
      demand(operation);
    };
    const auto add = [&] { pair.node().finish(fetch_add(1, pair.node().box(), 0, 1, nullptr)); };
    const auto lock = [&] {
      auto taken = space.lock(whole);
      demand(taken);
      auto given = space.unlock(whole);
      demand(given);
    };
    std::vector<Contender> contenders(kOurs);
    contenders[null_get] = timed(pair, plan, [&] { get(null); });
    contenders[null_put] = timed(pair, plan, [&] { put(null); });
    contenders[fetch_and_add] = timed(pair, plan, add);
    contenders[lock_unlock] = timed(pair, plan, lock);
    contenders[write_get] = timed(pair, plan, [&] { get(whole); });
    contenders[write_put] = timed(pair, plan, [&] { put(whole); });
    alternate(me, 1, contenders);
  });
}

struct Comparison {
  const char* operation;
  Ours ours;
  const char* theirs;
  std::vector<double> times = {};
};

std::vector<Result> compare_with_all(const Effort& effort, std::size_t bytes) {
  const Batches plan = effort.plan(100, bytes <= 1024 ? 100 : 10);
  std::vector<Comparison> all{{"get, null", null_get, "MPI_Get and flush"},
                              {"put, null", null_put, "MPI_Put and flush"},
                              {"fetch-add of the fabric", fetch_and_add, "MPI_Fetch_and_op"},
                              {"lock, unlock", lock_unlock, "MPI_Win_lock, MPI_Win_unlock"},
                              {"get, write", write_get, "Redis GET"},
                              {"put, write", write_put, "Redis SET"}};
  const MpiOneSided mpi;
  constexpr auto kRedis = Neighbour::Kind::redis;
  std::unique_ptr<Neighbour> redis;
  if (Neighbour::missing(kRedis).empty()) redis = std::make_unique<Neighbour>(kRedis);
  Team team({.processes = 2, .timeout = effort.timeout});
  for (std::uint32_t round = 0; round < effort.rounds; ++round) {
    our_round(team, effort, plan, bytes);
    if (mpi.available()) {
      const auto times = mpi.measure(plan, bytes, effort.timeout);
      all[0].times.push_back(times.get_ns);
      all[1].times.push_back(times.put_ns);
      all[2].times.push_back(times.fetch_add_ns);
      all[3].times.push_back(times.lock_ns);
    }
    if (redis) {
      const auto times = redis->measure(effort.plan(20, 20), bytes);
      all[4].times.push_back(times.get_ns);
      all[5].times.push_back(times.set_ns);
    }
  }
  std::vector<Result> results;
  for (const Comparison& each : all) {
    if (bytes != 8 && (each.ours == fetch_and_add || each.ours == lock_unlock)) continue;
    const bool of_redis = each.ours == write_get || each.ours == write_put;
    results.push_back(compared({.params = {{"operation", each.operation}, {"bytes", double(bytes)}},
                                .unit = "ns",
                                .goal = Goal{.bound = 1},
                                .note = of_redis ? Neighbour::missing(kRedis) : mpi.missing()},
                               team.series(each.ours), each.theirs, each.times));
  }
  return results;
}

}  // namespace

Experiment segment_peers() {
  return {.name = "peers",
          .title = "beside one-sided operations of MPI, and Redis over a UNIX socket",
          .fabric = "shm",
          .x = "bytes",
          .run = for_settings(kSizes, compare_with_all, 1)};
}

}  // namespace dunlin::bench

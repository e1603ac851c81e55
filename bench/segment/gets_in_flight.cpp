#include <array>
#include <string>

#include "bench/segment/experiments.hpp"
#include "bench/segment/segment_node.hpp"

namespace dunlin::bench {
namespace {

constexpr std::size_t kAtOnce = 32;
constexpr std::array<std::size_t, 3> kSizes{8, 64, 4096};

Result measure(const RealNetwork& network, const Effort& effort, std::size_t bytes) {
  const Batches plan = effort.plan(100, network.trips(16));
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    SegmentPair pair(me, group);
    const Key key = pair.make({.bytes = bytes * kAtOnce, .coherence = Coherence::null});
    std::vector<std::uint64_t> words(bytes / 8 * kAtOnce);
    const auto memory = std::as_writable_bytes(std::span(words));
    Completion done;
    std::vector<Operation> batch;
    for (std::size_t i = 0; i < kAtOnce; ++i)
      batch.push_back(
          read(1, pair.node().box(), kRoom + i * bytes, &memory[i * bytes], bytes).notify(done));
    const auto bare = [&] {
      pair.node().post(batch);
      while (!done.finished()) pair.node().poll();
    };
    std::vector<SegmentRead> together;
    for (std::size_t i = 0; i < kAtOnce; ++i)
      together.push_back({.key = key, .to = memory.subspan(i * bytes, bytes), .offset = i * bytes});
    const auto gets = [&] {
      if (const remote::Status status = pair.space().get_many(together);
          status != remote::Status::ok)
        throw Error("bench: get_many: " + std::string(remote::describe(status)));
    };
    alternate(me, effort.rounds,
              {timed(pair, plan, bare, kAtOnce), timed(pair, plan, gets, kAtOnce)});
    pair.node().fabric().abandon(done);
  });
  return compared({.params = {{"at once", double(kAtOnce)}, {"bytes", double(bytes)}},
                   .unit = "ns",
                   .goal = Goal{.bound = network.is_shm() ? 1.25 : 1.15}},
                  team.series(1), "the fabric's reads, one batch", team.series(0));
}

}  // namespace

Experiment gets_in_flight(const RealNetwork& network) {
  return {.name = "in flight",
          .title = "32 gets under null at once, for one of them",
          .fabric = network.name,
          .x = "bytes",
          .run = on_network(network, for_settings(kSizes, measure))};
}

}  // namespace dunlin::bench

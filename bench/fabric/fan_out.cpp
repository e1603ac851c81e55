#include <array>

#include "bench/fabric/experiments.hpp"
#include "bench/fabric/group.hpp"
#include "bench/fabric/node.hpp"

/// Member 0 measures, in a process of its own; all others live in the other one.
namespace dunlin::bench {
namespace {

std::vector<Result> to_peers(const RealNetwork& network, const Effort& effort,
                             std::uint32_t peers) {
  const Batches plan = effort.plan(100, network.trips_per_batch);
  const Group group(network, effort, peers + 1);
  Team team(group.team());
  team.run([&](Member& me) {
    std::vector<std::unique_ptr<Node>> nodes;
    for (auto& fabric : group.join_many(me.rank(), me.rank() == 0 ? 1 : peers))
      nodes.push_back(std::make_unique<Node>(std::move(fabric)));
    std::vector<Node*> all;
    for (const auto& node : nodes) all.push_back(node.get());
    connect(me, all);

    Node& first = *nodes.front();
    const auto bare = group.bare(me, &first.fabric());
    std::vector<std::uint64_t> words(peers + 1, 1);
    Completion done;
    std::vector<Operation> writes;
    std::vector<Operation> reads;
    for (Rank peer = 1; peer <= peers; ++peer) {
      writes.push_back(
          write(peer, first.box(), kSignal, &words[peer], 8).notify(done, Notify::remotely));
      reads.push_back(read(peer, first.box(), kCounter, &words[peer], 8).notify(done));
    }
    const auto poll = [&] {
      for (Node* const node : all) node->poll();
    };
    const auto turn = [&](const std::vector<Operation>& batch) {
      return one_sided(me, first, poll, [&] {
        return batch_ns(plan, [&] {
          first.post(batch);
          while (!done.finished()) first.poll();
        });
      });
    };
    alternate(me, effort.rounds,
              {[&] { return bare->spread(me, plan, peers); }, [&] { return turn(writes); },
               [&] { return turn(reads); }});
  });
  std::vector<Result> results;
  for (const std::uint32_t series : {1U, 2U}) {
    results.push_back(compared(
        {.params = {{"peers", double(peers)}, {"operation", series == 1 ? "write" : "read"}},
         .unit = "ns"},
        team.series(series), network.bare_name + ", 8 bytes to each", team.series(0)));
  }
  return results;
}

}  // namespace

Experiment fan_out(const RealNetwork& network) {
  return {.name = "fan-out",
          .title =
              "8 bytes to, or from, several peers at once, until all are done; the peers share "
              "a process",
          .fabric = network.name,
          .x = "peers",
          .run = on_network(network, for_settings({1U, 2U, 4U, 8U}, to_peers))};
}

}  // namespace dunlin::bench

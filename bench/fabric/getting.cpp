#include <array>

#include "bench/fabric/experiments.hpp"
#include "bench/fabric/group.hpp"
#include "bench/fabric/node.hpp"

namespace dunlin::bench {
namespace {

constexpr std::array<std::size_t, 5> kSizes{8, 64, 1024, 10'240, 65'536};

Result get(const RealNetwork& network, const Effort& effort, std::size_t bytes) {
  const Batches plan = effort.plan(100, network.trips(bytes <= 10'240 ? 1 : 10));
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    Node node(group.join(me.rank()));
    const auto bare = group.bare(me, &node.fabric());
    connect(me, node);
    std::vector<std::byte> to(bytes);
    const auto once = [&] { node.finish(read(1, node.box(), kRoom, to.data(), bytes)); };
    alternate(me, effort.rounds,
              {[&] { return bare->fetch(me, plan, bytes); },
               [&] { return one_sided(me, node, [&] { return batch_ns(plan, once); }); }});
  });
  return compared({.params = {{"bytes", double(bytes)}},
                   .unit = "ns",
                   .goal = ratio_goal(bytes == 8 ? network.goals.get_ratio : std::nullopt)},
                  team.series(1), network.bare_name + ", asked for and here", team.series(0));
}

}  // namespace

Experiment getting(const RealNetwork& network) {
  return {.name = "get",
          .title = "reading a peer's memory, until the bytes are here",
          .fabric = network.name,
          .x = "bytes",
          .run = on_network(network, for_settings(kSizes, get))};
}

}  // namespace dunlin::bench

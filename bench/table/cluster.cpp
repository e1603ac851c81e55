#include "bench/table/cluster.hpp"

namespace dunlin::bench {
namespace {

struct Counter {
  Cell<std::uint64_t> count;
};

}  // namespace

double simple_detection(const sim::Profile& profile, std::uint64_t seed, std::uint32_t nodes,
                        Refresh refresh, std::uint32_t times) {
  return mean_round_trip<1>(profile, seed, {.nodes = nodes, .refresh = refresh, .times = times}) /
         2;
}

double counting_rate(const sim::Profile& profile, std::uint64_t seed, std::uint32_t nodes,
                     Refresh refresh, std::uint64_t rounds) {
  Cluster<Counter> cluster(profile, nodes, seed, refresh);
  for (Rank node = 0; node < nodes; ++node) {
    cluster[node].when(all(&Counter::count) >= mine(&Counter::count)).recurrent([](auto& t) {
      ++t.mine().count;
      t.push(&Counter::count);
    });
  }
  const auto run_to = [&](std::uint64_t goal) {
    cluster.run_until([&] { return cluster[0].mine().count >= goal; });
    return cluster.world.now_ns();
  };
  const std::uint64_t warm_up = std::max<std::uint64_t>(rounds / 10, 1);
  const std::uint64_t start = run_to(warm_up);
  const std::uint64_t end = run_to(warm_up + rounds);
  return static_cast<double>(rounds) * 1e9 / static_cast<double>(end - start);
}

}  // namespace dunlin::bench

#include "bench/multicast/experiments.hpp"

namespace dunlin::bench {

std::vector<Experiment> multicast_experiments() {
  const RealNetwork& shm = real_network("shm");
  const auto over = [](const RealNetwork& network) {
    return network.both_ways ? std::vector{cast_throughput(network), cast_latency(network)}
                             : std::vector<Experiment>();
  };
  return joined<Experiment>(cast_throughput(shm), cast_latency(shm), casts_under_load(),
                            crowded_cast(), durable_cast(), view_change(), joins(),
                            on_each_network(over), simulated_view_change(), simulated_casts());
}

}  // namespace dunlin::bench

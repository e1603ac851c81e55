#include "bench/topic/experiments.hpp"

namespace dunlin::bench {

std::vector<Experiment> topic_experiments() {
  return joined<Experiment>(topic_throughput(), logged_throughput(), topic_latency(), many_topics(),
                            sample_types(), arrivals(), relayed_samples(), gateway_to_dds(),
                            on_each_network(dds_peers), simulated_topics());
}

}  // namespace dunlin::bench

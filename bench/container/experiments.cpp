#include "bench/container/experiments.hpp"

namespace dunlin::bench {

std::vector<Experiment> container_experiments() {
  return joined<Experiment>(on_each_network(container_calls, calls_in_flight, queue_checksums,
                                            aggregated_inserts, attentiveness, style_choices),
                            many_processes(), container_peers(), simulated_containers(),
                            simulated_style_choices());
}

}  // namespace dunlin::bench

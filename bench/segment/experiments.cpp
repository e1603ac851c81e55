#include "bench/segment/experiments.hpp"

namespace dunlin::bench {

std::vector<Experiment> segment_experiments() {
  return joined<Experiment>(
      on_each_network(null_overhead, coherence, gets_in_flight, uncontended_locks, contended_locks),
      daemon_trips(), segment_peers(), simulated_segments());
}

}  // namespace dunlin::bench

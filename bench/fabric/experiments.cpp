#include "bench/fabric/experiments.hpp"

namespace dunlin::bench {

std::vector<Experiment> fabric_experiments() {
  return joined<Experiment>(on_each_network(signalling, getting, atomics, messages, put_rate,
                                            put_stream, fan_out, signalling_asleep),
                            simulated_costs());
}

}  // namespace dunlin::bench

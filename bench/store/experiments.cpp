#include "bench/store/experiments.hpp"

namespace dunlin::bench {

std::vector<Experiment> store_experiments() {
  return joined<Experiment>(lookup_cost(), on_each_network(store_gets), on_each_network(store_puts),
                            on_each_network(store_growth), store_sizes(), store_cache(),
                            store_twenty_million(), store_skew_and_reads(), store_clients(),
                            store_ycsb(), store_latency(), simulated_store());
}

}  // namespace dunlin::bench

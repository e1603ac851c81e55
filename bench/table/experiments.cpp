#include "bench/table/experiments.hpp"

namespace dunlin::bench {

std::vector<Experiment> table_experiments() {
  return joined<Experiment>(machine(), evaluation(), complexity(), row_size(),
                            on_each_network(detection, counting, pushing, idle),
                            on_each_network(failure), simulated_detection(),
                            simulated_conjunction(), simulated_counting(), simulated_complexity(),
                            simulated_row_size(), simulated_racks(), simulated_gigabit());
}

}  // namespace dunlin::bench

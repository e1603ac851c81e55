#pragma once

#include <vector>

#include "bench/fabric/networks.hpp"
#include "bench/harness/experiment.hpp"

namespace CLI {
class App;
}

/// The figures of the shared state table, one function and one file each.
namespace dunlin::bench {

[[nodiscard]] Experiment machine();
[[nodiscard]] Experiment detection();
[[nodiscard]] Experiment evaluation();
[[nodiscard]] Experiment complexity();
[[nodiscard]] Experiment counting();
[[nodiscard]] Experiment row_size();
[[nodiscard]] Experiment pushing();
[[nodiscard]] Experiment idle();
[[nodiscard]] Experiment failure(const RealNetwork& network);
/// Detection, counting, pushing and idling on each network between hosts that is there.
[[nodiscard]] std::vector<Experiment> network_experiments();
[[nodiscard]] Experiment simulated_detection();
[[nodiscard]] Experiment simulated_conjunction();
[[nodiscard]] Experiment simulated_counting();
[[nodiscard]] Experiment simulated_racks();
[[nodiscard]] Experiment simulated_gigabit();
[[nodiscard]] Experiment simulated_complexity();
[[nodiscard]] Experiment simulated_row_size();

[[nodiscard]] const std::vector<Experiment>& table_experiments();

/// `dunlin bench table`
void add_table_suite(CLI::App& bench);

}  // namespace dunlin::bench

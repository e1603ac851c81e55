#pragma once

#include "bench/fabric/networks.hpp"
#include "bench/harness/experiment.hpp"

/// The figures of the shared state table, one function and one file each.
namespace dunlin::bench {

[[nodiscard]] Experiment machine();
[[nodiscard]] Experiment evaluation();
[[nodiscard]] Experiment complexity();
[[nodiscard]] Experiment row_size();
// On each network, beside what the same processes can do without Dunlin over it, with the same way
// of waiting.
[[nodiscard]] Experiment detection(const RealNetwork& network);
[[nodiscard]] Experiment counting(const RealNetwork& network);
[[nodiscard]] Experiment pushing(const RealNetwork& network);
[[nodiscard]] Experiment idle(const RealNetwork& network);
[[nodiscard]] Experiment failure(const RealNetwork& network);
[[nodiscard]] Experiment simulated_detection();
[[nodiscard]] Experiment simulated_conjunction();
[[nodiscard]] Experiment simulated_counting();
[[nodiscard]] Experiment simulated_racks();
[[nodiscard]] Experiment simulated_gigabit();
[[nodiscard]] Experiment simulated_complexity();
[[nodiscard]] Experiment simulated_row_size();

}  // namespace dunlin::bench

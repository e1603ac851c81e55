#pragma once

#include <vector>

#include "bench/fabric/networks.hpp"
#include "bench/harness/experiment.hpp"

/// The costs of a fabric's operations, one function and one file each, for a cost model.
namespace dunlin::bench {

[[nodiscard]] Experiment signalling(const RealNetwork& network);
[[nodiscard]] std::vector<Experiment> signalling_asleep(const RealNetwork& network);
[[nodiscard]] Experiment getting(const RealNetwork& network);
[[nodiscard]] Experiment atomics(const RealNetwork& network);
[[nodiscard]] Experiment messages(const RealNetwork& network);
[[nodiscard]] Experiment put_rate(const RealNetwork& network);
[[nodiscard]] Experiment put_stream(const RealNetwork& network);
[[nodiscard]] Experiment fan_out(const RealNetwork& network);
[[nodiscard]] std::vector<Experiment> simulated_costs();

}  // namespace dunlin::bench

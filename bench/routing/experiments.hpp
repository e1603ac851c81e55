#pragma once

#include <vector>

#include "bench/harness/experiment.hpp"

namespace dunlin::bench {

/// All of `dunlin bench routing`.
[[nodiscard]] std::vector<Experiment> routing_experiments();

}  // namespace dunlin::bench

#pragma once

#include <vector>

#include "bench/fabric/networks.hpp"
#include "bench/harness/experiment.hpp"

/// The figures of the multicast of one view, one function and one file each.
namespace dunlin::bench {

[[nodiscard]] Experiment cast_throughput(const RealNetwork& network);
[[nodiscard]] Experiment cast_latency(const RealNetwork& network);
[[nodiscard]] std::vector<Experiment> casts_under_load();
[[nodiscard]] Experiment crowded_cast();
[[nodiscard]] Experiment durable_cast();
[[nodiscard]] Experiment view_change();
[[nodiscard]] std::vector<Experiment> joins();
[[nodiscard]] Experiment simulated_view_change();
[[nodiscard]] std::vector<Experiment> simulated_casts();

}  // namespace dunlin::bench

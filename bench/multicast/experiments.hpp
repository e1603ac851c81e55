#pragma once

#include <vector>

#include "bench/fabric/networks.hpp"
#include "bench/harness/experiment.hpp"

namespace CLI {
class App;
}

/// The figures of the multicast of one view, one function and one file each.
namespace dunlin::bench {

[[nodiscard]] Experiment cast_throughput();
[[nodiscard]] Experiment cast_latency();
[[nodiscard]] Experiment cast_latency(const RealNetwork& network);
[[nodiscard]] std::vector<Experiment> casts_under_load();
[[nodiscard]] Experiment crowded_cast();
[[nodiscard]] Experiment durable_cast();
[[nodiscard]] std::vector<Experiment> casts_over_networks();
[[nodiscard]] Experiment view_change();
[[nodiscard]] std::vector<Experiment> joins();
[[nodiscard]] Experiment simulated_view_change();
[[nodiscard]] std::vector<Experiment> simulated_casts();

[[nodiscard]] const std::vector<Experiment>& multicast_experiments();

/// `dunlin bench multicast`
void add_multicast_suite(CLI::App& bench);

}  // namespace dunlin::bench

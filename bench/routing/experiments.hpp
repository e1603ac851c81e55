#pragma once

#include "bench/harness/experiment.hpp"

/// The figures of `dunlin bench routing`.
namespace CLI {
class App;
}

namespace dunlin::bench {

/// The published figure: after one change of the hub's, time to the last install, to the first, and
/// time computing, over the number of routers.
[[nodiscard]] Experiment hub_and_ring_on_shm();
[[nodiscard]] Experiment hub_and_ring_on_sim();
/// What a simulated router is charged for computing.
[[nodiscard]] Experiment paths();

void add_routing_suite(CLI::App& bench);

}  // namespace dunlin::bench

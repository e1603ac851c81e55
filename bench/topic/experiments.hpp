#pragma once

#include <vector>

#include "bench/harness/experiment.hpp"

namespace CLI {
class App;
}

/// The figures of topics, beside the bare multicast.
namespace dunlin::bench {

[[nodiscard]] const std::vector<Experiment>& topic_experiments();

/// `dunlin bench topic`
void add_topic_suite(CLI::App& bench);

}  // namespace dunlin::bench

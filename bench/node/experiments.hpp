#pragma once

#include <vector>

#include "bench/harness/experiment.hpp"

/// The figures of Node, beside the same work with objects that the measuring thread polls itself.
namespace dunlin::bench {

/// Messages a second of 1, 2 and 4 threads, by handles and by threads that wait for the lock; and
/// the time until a message is delivered to a callback.
[[nodiscard]] std::vector<Experiment> node_sends();
/// Gets of another thread's than the polling one, and calls that are handed over to it.
[[nodiscard]] std::vector<Experiment> node_gets();

}  // namespace dunlin::bench

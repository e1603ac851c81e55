#pragma once

#include <vector>

#include "bench/fabric/networks.hpp"
#include "bench/harness/experiment.hpp"

/// The figures of containers, one function and one file each.
namespace dunlin::bench {

/// Each call in both styles, beside the bare sequence of operations, and its prediction.
[[nodiscard]] Experiment container_calls(const RealNetwork& network);
[[nodiscard]] Experiment calls_in_flight(const RealNetwork& network);
[[nodiscard]] Experiment aggregated_inserts(const RealNetwork& network);
/// Pushes and pops of slots with stamps, beside elements with a checksum.
[[nodiscard]] Experiment queue_checksums(const RealNetwork& network);
/// Calls and updates by functions of the program's, beside an add by message.
[[nodiscard]] Experiment functions(const RealNetwork& network);
/// 1 to 16 processes that insert and find in one map.
[[nodiscard]] Experiment many_processes();
/// A target that computes between two polls.
[[nodiscard]] Experiment attentiveness(const RealNetwork& network);
/// Both styles of each call, by promise, size, clients and attentiveness: what the cost model
/// chooses.
[[nodiscard]] Experiment style_choices(const RealNetwork& network);
[[nodiscard]] Experiment simulated_style_choices();
/// Barriers, all-reduces and broadcasts of 2 to 16 processes, beside MPI's.
[[nodiscard]] Experiment collectives();
/// The same of 2 to 1,024 simulated members, beside what a write for each step takes.
[[nodiscard]] std::vector<Experiment> simulated_collectives();
/// Beside one-sided operations of MPI.
[[nodiscard]] Experiment container_peers();
[[nodiscard]] std::vector<Experiment> simulated_containers();

}  // namespace dunlin::bench

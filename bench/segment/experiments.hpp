#pragma once

#include <vector>

#include "bench/fabric/networks.hpp"
#include "bench/harness/experiment.hpp"

/// The figures of shared segments, one function and one file each.
namespace dunlin::bench {

[[nodiscard]] Experiment null_overhead(const RealNetwork& network);
[[nodiscard]] Experiment coherence(const RealNetwork& network);
[[nodiscard]] Experiment gets_in_flight(const RealNetwork& network);
[[nodiscard]] Experiment uncontended_locks(const RealNetwork& network);
[[nodiscard]] Experiment contended_locks(const RealNetwork& network);
/// Through the daemon, beside the bare rings.
[[nodiscard]] Experiment daemon_trips();
/// Beside Open MPI and Redis, where they are installed.
[[nodiscard]] Experiment segment_peers();
/// Select queries from segments, beside SQLite; none where that was not found at build time.
[[nodiscard]] std::vector<Experiment> queries();
/// The published figures, and 1,000 members.
[[nodiscard]] std::vector<Experiment> simulated_segments();
/// The published figures of services, by those of examples/services.
[[nodiscard]] std::vector<Experiment> simulated_services();

}  // namespace dunlin::bench

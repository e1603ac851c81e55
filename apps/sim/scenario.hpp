#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sim/audit.hpp"

/// A group in the simulator, drawn from a seed with its network, subgroups, messages and faults,
/// run from beginning to end and audited. The same seed gives the same run.
namespace dunlin::app::sim {

struct Outcome {
  std::string fault;  // the first promise that was broken; empty if none was
  std::uint64_t views = 0;
  std::uint64_t deliveries = 0;
  std::uint64_t faults = 0;  // injected faults
  std::uint64_t digest = 0;
};

/// A line for each event, with its time; for `--trace`.
using Trace = std::function<void(std::uint64_t time_ns, const std::string& what)>;

/// Joins and faults of disks, each of which may be left out.
struct Kinds {
  bool joins = true;        // in one seed of three, members come in later
  bool disk_faults = true;  // in one of two with durable subgroups
  bool changing = false;    // subgroups come at run time
};

[[nodiscard]] Outcome run_multicast(std::uint64_t seed, const Trace& trace = {},
                                    const Kinds& kinds = {});

}  // namespace dunlin::app::sim

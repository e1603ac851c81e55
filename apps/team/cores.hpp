#pragma once

#include <cstdint>
#include <vector>

/// Processor cores: which we may use, and how to stay on one of them.
namespace dunlin::app {

/// The cores that this process may run on, in order.
[[nodiscard]] std::vector<int> usable_cores();

/// Keep the calling thread on one core. Throws Error.
void pin_to(int core);

/// Let the calling thread use all of these. Throws Error.
void use_all(const std::vector<int>& cores);

/// User and system time that this process has used so far.
[[nodiscard]] std::uint64_t cpu_time_ns();

}  // namespace dunlin::app

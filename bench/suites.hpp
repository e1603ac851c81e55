#pragma once

#include <vector>

#include "bench/harness/suite.hpp"

namespace dunlin::bench {

/// All suites of figures, in the order of the help.
[[nodiscard]] const std::vector<Suite>& suites();

/// Adds a command for each of them.
void add_suites(CLI::App& program);

}  // namespace dunlin::bench

#pragma once

#include <vector>

#include "doctor/finding.hpp"
#include "doctor/host.hpp"

namespace dunlin::doctor {

/// All that there is to say of a host. Reads, and changes nothing.
[[nodiscard]] Report examine(const Host& host);

// Its halves: machine.cpp, fabrics.cpp.
[[nodiscard]] std::vector<Finding> examine_machine(const Host& host);
[[nodiscard]] std::vector<Finding> examine_fabrics(const Host& host);

/// "64 MiB"
[[nodiscard]] std::string size_text(std::uint64_t bytes);

}  // namespace dunlin::doctor

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fault_injection.hpp"

/// What is known of each fault: which rule it breaks, and how the auditor sees it.
namespace dunlin::fault_injection {

struct Entry {
  FaultInjection fault;
  std::string name;
  std::string rule;                // of docs/group.md, docs/multicast.md or docs/table.md
  std::vector<std::string> signs;  // the auditor's sentence has one of them
  std::uint64_t first_seed;        // from this on it shows
  std::uint64_t seeds;             // ... in so many; 0: only in the agreement's own test
};

[[nodiscard]] std::span<const Entry> catalogue();

}  // namespace dunlin::fault_injection

#pragma once

#include <cstdio>
#include <string_view>

#include "injected_faults.hpp"

namespace dunlin::fault_injection {

/// Switches on the fault that the first argument names; if there is none, prints those that there
/// are.
[[nodiscard]] inline bool choose(int argc, char** argv) {
  for (const NamedFault& one : kInjectedFaults)
    if (argc > 1 && std::string_view(argv[1]) == one.name) injected_fault = one.fault;
  if (injected_fault != InjectedFault::none || (argc > 1 && std::string_view(argv[1]) == "none"))
    return true;
  std::fprintf(stderr, "usage: %s FAULT ..., FAULT being none, or one of\n", argv[0]);
  for (const NamedFault& one : kInjectedFaults)
    std::fprintf(stderr, "  %-30s (%s)\n", one.name, one.breaks);
  return false;
}

}  // namespace dunlin::fault_injection

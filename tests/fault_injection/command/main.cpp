#include <cstdio>
#include <cstring>

#include "command.hpp"
#include "fault_injection/catalogue.hpp"

/// The command with a fault: `dunlin_with_fault FAULT sim multicast --seeds 7 --trace`.
int main(int argc, char** argv) {
  for (const dunlin::fault_injection::Entry& entry : dunlin::fault_injection::catalogue())
    if (argc > 1 && entry.name == argv[1]) dunlin::active_fault = entry.fault;
  if (dunlin::active_fault == dunlin::FaultInjection::none) {
    std::puts(
        "usage: dunlin_with_fault FAULT sim multicast --seeds A..B [--trace], FAULT being one of");
    for (const dunlin::fault_injection::Entry& entry : dunlin::fault_injection::catalogue())
      std::printf("  %-26s (%s)\n", entry.name.c_str(), entry.rule.c_str());
    return 2;
  }
  return static_cast<int>(dunlin::app::run(argc - 1, argv + 1));
}

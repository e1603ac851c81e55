#include "command.hpp"
#include "fault_injection/command/choose.hpp"

/// The command with a fault: `dunlin_with_fault FAULT sim multicast --seeds 7 --trace`.
int main(int argc, char** argv) {
  if (!dunlin::fault_injection::choose(argc, argv)) return 2;
  return static_cast<int>(dunlin::app::run(argc - 1, argv + 1));
}

#include <cstdio>
#include <cstring>

#include "command.hpp"
#include "flaws/catalogue.hpp"

/// The command with a flaw: `dunlin_flawed FLAW sim multicast --seeds 7 --trace`.
int main(int argc, char** argv) {
  for (const dunlin::flaws::Entry& entry : dunlin::flaws::catalogue())
    if (argc > 1 && entry.name == argv[1]) dunlin::flaw_at_work = entry.flaw;
  if (dunlin::flaw_at_work == dunlin::Flaw::none) {
    std::puts("usage: dunlin_flawed FLAW sim multicast --seeds A..B [--trace], FLAW being one of");
    for (const dunlin::flaws::Entry& entry : dunlin::flaws::catalogue())
      std::printf("  %-26s (%s)\n", entry.name.c_str(), entry.rule.c_str());
    return 2;
  }
  return static_cast<int>(dunlin::app::run(argc - 1, argv + 1));
}

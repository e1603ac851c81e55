#include <gtest/gtest.h>

#include "flaws/catalogue.hpp"

/// The test of the agreement alone, with a flaw: `flawed_views FLAW`.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (const dunlin::flaws::Entry& entry : dunlin::flaws::catalogue())
    if (argc > 1 && entry.name == argv[1]) dunlin::flaw_at_work = entry.flaw;
  return RUN_ALL_TESTS();
}

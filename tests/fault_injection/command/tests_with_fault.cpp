#include <gtest/gtest.h>

#include "fault_injection/command/choose.hpp"

/// The tests of a layer, with a fault: `stores_with_fault FAULT --gtest_filter=...`.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!dunlin::fault_injection::choose(argc, argv)) return 2;
  return RUN_ALL_TESTS();
}

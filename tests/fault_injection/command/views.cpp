#include <gtest/gtest.h>

#include "fault_injection/catalogue.hpp"

/// The test of the agreement alone, with a fault: `views_with_fault FAULT`.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (const dunlin::fault_injection::Entry& entry : dunlin::fault_injection::catalogue())
    if (argc > 1 && entry.name == argv[1]) dunlin::active_fault = entry.fault;
  return RUN_ALL_TESTS();
}

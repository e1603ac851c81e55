#pragma once

#include <cstdlib>
#include <iostream>
#include <span>
#include <string_view>

#include <gtest/gtest.h>

#include "fault_injection.hpp"

/// The tests of a layer, with a fault: `LAYER_with_fault FAULT`.
namespace dunlin::fault_injection {

struct NamedFault {
  std::string_view name;
  FaultInjection fault;
};

inline int run_tests(int argc, char** argv, std::span<const NamedFault> faults) {
  testing::InitGoogleTest(&argc, argv);
  if (argc < 2) return RUN_ALL_TESTS();
  for (const NamedFault& one : faults)
    if (one.name == argv[1]) active_fault = one.fault;
  if (active_fault == FaultInjection::none) {
    std::cerr << argv[0] << ": no fault is called '" << argv[1] << "'\n";
    return EXIT_FAILURE;
  }
  return RUN_ALL_TESTS();
}

}  // namespace dunlin::fault_injection

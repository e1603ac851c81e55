#include <array>
#include <cstdlib>
#include <string_view>

#include <gtest/gtest.h>

#include "fault_injection.hpp"

/// The audit of segments, with a fault: `segments_with_fault FAULT`.
namespace {

using dunlin::FaultInjection;

struct Named {
  std::string_view name;
  FaultInjection fault;
};

constexpr std::array kFaults{
    Named{"frozen_locks_go_on", FaultInjection::frozen_locks_go_on},
    Named{"holder_does_not_come_first", FaultInjection::holder_does_not_come_first},
    Named{"death_is_not_told", FaultInjection::death_is_not_told},
    Named{"given_up_is_not_settled", FaultInjection::given_up_is_not_settled},
    Named{"torn_get_is_taken", FaultInjection::torn_get_is_taken},
    Named{"reused_slot_is_taken", FaultInjection::reused_slot_is_taken},
    Named{"second_copy_is_left_out", FaultInjection::second_copy_is_left_out},
    Named{"second_copy_is_empty", FaultInjection::second_copy_is_empty},
    Named{"pause_is_not_awaited", FaultInjection::pause_is_not_awaited},
    Named{"moved_is_read_too_early", FaultInjection::moved_is_read_too_early},
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (const Named& one : kFaults)
    if (argc > 1 && one.name == argv[1]) dunlin::active_fault = one.fault;
  return RUN_ALL_TESTS();
}

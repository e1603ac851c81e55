#include <array>

#include "fault_injection/command/named_faults.hpp"

/// The audit of segments, with a fault: `segments_with_fault FAULT`.
namespace {

using dunlin::FaultInjection;
using dunlin::fault_injection::NamedFault;

constexpr std::array kFaults{
    NamedFault{"frozen_locks_go_on", FaultInjection::frozen_locks_go_on},
    NamedFault{"holder_does_not_come_first", FaultInjection::holder_does_not_come_first},
    NamedFault{"death_is_not_told", FaultInjection::death_is_not_told},
    NamedFault{"given_up_is_not_settled", FaultInjection::given_up_is_not_settled},
    NamedFault{"torn_get_is_taken", FaultInjection::torn_get_is_taken},
    NamedFault{"reused_slot_is_taken", FaultInjection::reused_slot_is_taken},
    NamedFault{"second_copy_is_left_out", FaultInjection::second_copy_is_left_out},
    NamedFault{"second_copy_is_empty", FaultInjection::second_copy_is_empty},
    NamedFault{"pause_is_not_awaited", FaultInjection::pause_is_not_awaited},
    NamedFault{"moved_is_read_too_early", FaultInjection::moved_is_read_too_early},
};

}  // namespace

int main(int argc, char** argv) { return dunlin::fault_injection::run_tests(argc, argv, kFaults); }

#include <array>

#include "fault_injection/command/named_faults.hpp"

/// The audits of topics, with a fault: `topics_with_fault FAULT`.
namespace {

using dunlin::FaultInjection;
using dunlin::fault_injection::NamedFault;

constexpr std::array kTopicFaults{
    NamedFault{"way_ends_with_its_budget", FaultInjection::way_ends_with_its_budget},
    NamedFault{"late_reader_is_given_both", FaultInjection::late_reader_is_given_both},
    NamedFault{"state_lacks_the_newest", FaultInjection::state_lacks_the_newest},
    NamedFault{"overtaken_is_passed_over", FaultInjection::overtaken_is_passed_over},
    NamedFault{"repeated_is_delivered", FaultInjection::repeated_is_delivered},
    NamedFault{"repeated_is_in_the_log", FaultInjection::repeated_is_in_the_log},
    NamedFault{"trim_forgets_late_readers", FaultInjection::trim_forgets_late_readers},
    NamedFault{"endpoints_outlive_their_member", FaultInjection::endpoints_outlive_their_member},
    NamedFault{"deadline_is_late", FaultInjection::deadline_is_late},
    NamedFault{"order_counts_what_is_read", FaultInjection::order_counts_what_is_read},
    NamedFault{"access_does_not_wait", FaultInjection::access_does_not_wait},
};

}  // namespace

int main(int argc, char** argv) {
  return dunlin::fault_injection::run_tests(argc, argv, kTopicFaults);
}

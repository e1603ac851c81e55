#include <array>
#include <string_view>

#include <gtest/gtest.h>

#include "fault_injection.hpp"

/// The audits of containers, with a fault: `containers_with_fault FAULT`.
namespace {

using dunlin::FaultInjection;

struct ContainerFault {
  std::string_view name;
  FaultInjection fault;
};

constexpr std::array kContainerFaults{
    ContainerFault{"torn_value_is_taken", FaultInjection::torn_value_is_taken},
    ContainerFault{"lost_claim_is_used", FaultInjection::lost_claim_is_used},
    ContainerFault{"dead_claim_stays", FaultInjection::dead_claim_stays},
    ContainerFault{"given_up_claim_stays", FaultInjection::given_up_claim_stays},
    ContainerFault{"word_before_payload", FaultInjection::word_before_payload},
    ContainerFault{"torn_scan_is_taken", FaultInjection::torn_scan_is_taken},
    ContainerFault{"slot_without_room_is_filled", FaultInjection::slot_without_room_is_filled},
    ContainerFault{"lost_pop_is_used", FaultInjection::lost_pop_is_used},
    ContainerFault{"empty_without_a_look", FaultInjection::empty_without_a_look},
    ContainerFault{"dead_tickets_stay", FaultInjection::dead_tickets_stay},
    ContainerFault{"given_up_tickets_stay", FaultInjection::given_up_tickets_stay},
    ContainerFault{"old_reply_is_taken", FaultInjection::old_reply_is_taken},
    ContainerFault{"taken_comes_again", FaultInjection::taken_comes_again},
    ContainerFault{"untaken_counts_as_handled", FaultInjection::untaken_counts_as_handled},
    ContainerFault{"unhandled_place_is_reused", FaultInjection::unhandled_place_is_reused},
    ContainerFault{"retraction_is_not_awaited", FaultInjection::retraction_is_not_awaited},
    ContainerFault{"added_table_is_not_searched", FaultInjection::added_table_is_not_searched},
    ContainerFault{"full_table_is_passed_over", FaultInjection::full_table_is_passed_over},
    ContainerFault{"dead_claim_in_added_table_stays",
                   FaultInjection::dead_claim_in_added_table_stays},
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (const ContainerFault& one : kContainerFaults)
    if (argc > 1 && one.name == argv[1]) dunlin::active_fault = one.fault;
  return RUN_ALL_TESTS();
}

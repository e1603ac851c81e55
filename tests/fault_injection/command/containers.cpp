#include <array>

#include "fault_injection/command/named_faults.hpp"

/// The audits of containers, with a fault: `containers_with_fault FAULT`.
namespace {

using dunlin::FaultInjection;
using dunlin::fault_injection::NamedFault;

constexpr std::array kContainerFaults{
    NamedFault{"torn_value_is_taken", FaultInjection::torn_value_is_taken},
    NamedFault{"lost_claim_is_used", FaultInjection::lost_claim_is_used},
    NamedFault{"dead_claim_stays", FaultInjection::dead_claim_stays},
    NamedFault{"given_up_claim_stays", FaultInjection::given_up_claim_stays},
    NamedFault{"word_before_payload", FaultInjection::word_before_payload},
    NamedFault{"torn_scan_is_taken", FaultInjection::torn_scan_is_taken},
    NamedFault{"slot_without_room_is_filled", FaultInjection::slot_without_room_is_filled},
    NamedFault{"lost_pop_is_used", FaultInjection::lost_pop_is_used},
    NamedFault{"empty_without_a_look", FaultInjection::empty_without_a_look},
    NamedFault{"dead_tickets_stay", FaultInjection::dead_tickets_stay},
    NamedFault{"given_up_tickets_stay", FaultInjection::given_up_tickets_stay},
    NamedFault{"old_reply_is_taken", FaultInjection::old_reply_is_taken},
    NamedFault{"taken_comes_again", FaultInjection::taken_comes_again},
    NamedFault{"untaken_counts_as_handled", FaultInjection::untaken_counts_as_handled},
    NamedFault{"unhandled_place_is_reused", FaultInjection::unhandled_place_is_reused},
    NamedFault{"retraction_is_not_awaited", FaultInjection::retraction_is_not_awaited},
    NamedFault{"added_table_is_not_searched", FaultInjection::added_table_is_not_searched},
    NamedFault{"full_table_is_passed_over", FaultInjection::full_table_is_passed_over},
    NamedFault{"dead_claim_in_added_table_stays", FaultInjection::dead_claim_in_added_table_stays},
    NamedFault{"reused_block_is_taken", FaultInjection::reused_block_is_taken},
    NamedFault{"given_up_block_stays", FaultInjection::given_up_block_stays},
    NamedFault{"packed_change_is_mended", FaultInjection::packed_change_is_mended},
    NamedFault{"erased_packed_slot_is_offered", FaultInjection::erased_packed_slot_is_offered},
};

}  // namespace

int main(int argc, char** argv) {
  return dunlin::fault_injection::run_tests(argc, argv, kContainerFaults);
}

#include <array>

#include "fault_injection/command/named_faults.hpp"

/// The audit of the store, with a fault: `stores_with_fault FAULT`.
namespace {

using dunlin::FaultInjection;
using dunlin::fault_injection::NamedFault;

constexpr std::array kStoreFaults{
    NamedFault{"lock_is_ignored", FaultInjection::lock_is_ignored},
    NamedFault{"slab_is_given_back_too_early", FaultInjection::slab_is_given_back_too_early},
    NamedFault{"eviction_waits_for_a_lock", FaultInjection::eviction_waits_for_a_lock},
    NamedFault{"location_is_trusted", FaultInjection::location_is_trusted},
    NamedFault{"checksum_is_not_checked", FaultInjection::checksum_is_not_checked},
    NamedFault{"version_is_not_raised", FaultInjection::version_is_not_raised},
    NamedFault{"absence_is_not_checked", FaultInjection::absence_is_not_checked},
    NamedFault{"home_opens_at_once", FaultInjection::home_opens_at_once},
    NamedFault{"change_is_not_copied", FaultInjection::change_is_not_copied},
    NamedFault{"moved_key_is_not_followed", FaultInjection::moved_key_is_not_followed},
    NamedFault{"departed_entry_stays_live", FaultInjection::departed_entry_stays_live},
    NamedFault{"split_forgets_departure", FaultInjection::split_forgets_departure},
    NamedFault{"covers_too_much", FaultInjection::covers_too_much},
    NamedFault{"shed_chain_is_not_copied", FaultInjection::shed_chain_is_not_copied},
    NamedFault{"rescue_is_left_out", FaultInjection::rescue_is_left_out},
    NamedFault{"unlocked_before_write", FaultInjection::unlocked_before_write},
    NamedFault{"entry_after_slot", FaultInjection::entry_after_slot},
    NamedFault{"moved_is_not_marked", FaultInjection::moved_is_not_marked},
    NamedFault{"dead_is_not_marked", FaultInjection::dead_is_not_marked},
    NamedFault{"redo_is_left_out", FaultInjection::redo_is_left_out},
    NamedFault{"dead_lock_stays", FaultInjection::dead_lock_stays},
    NamedFault{"given_up_lock_stays", FaultInjection::given_up_lock_stays},
    NamedFault{"transaction_is_not_validated", FaultInjection::transaction_is_not_validated},
    NamedFault{"transaction_record_is_left_out", FaultInjection::transaction_record_is_left_out},
    NamedFault{"transaction_asks_nobody", FaultInjection::transaction_asks_nobody},
};

}  // namespace

int main(int argc, char** argv) {
  return dunlin::fault_injection::run_tests(argc, argv, kStoreFaults);
}

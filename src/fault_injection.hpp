#pragma once

#include <cstdint>

/// Typical bugs, each at one place of the real code, for the auditor of `dunlin sim multicast` to
/// find (docs/testing.md, tests/fault_injection). The library has none of them: there is_injected()
/// is a constant. A second build of some sources, with DUNLIN_FAULT_INJECTION, can switch one on;
/// only sources (*.cpp) ask, or both builds of a header would meet in one program.
namespace dunlin {

enum class FaultInjection : std::uint8_t {
  none,
  // group
  trim_is_the_leaders,
  accepted_is_forgotten,
  any_number_is_a_quorum,
  suspicion_is_taken_back,
  promise_does_not_wedge,
  dead_are_not_expelled,
  leaver_tells_nobody,
  generation_is_not_the_views,
  number_stays,
  torn_row_is_read,
  // multicast
  stable_too_early,
  announced_too_early,
  inlined_is_replaced_too_early,
  ring_reused_too_early,
  copy_freed_too_early,
  unsent_is_lost,
  delivered_is_sent_again,
  ahead_is_forgotten,
  null_counts_twice,
  nulls_cause_nulls,
  receipts_are_not_published,
  room_is_not_published,
  long_message_sleeps,
  durable_too_early,
  cut_is_forgotten,
  empty_log_begins_anew,
  // table
  frozen_row_is_emptied,
  // pubsub
  way_ends_with_its_budget,
  late_reader_is_given_both,
  state_lacks_the_newest,
  overtaken_is_passed_over,
  repeated_is_delivered,
  repeated_is_in_the_log,
  trim_forgets_late_readers,
  endpoints_outlive_their_member,
  deadline_is_late,
  order_counts_what_is_read,
  access_does_not_wait,
  // remote
  frozen_locks_go_on,
  holder_does_not_come_first,
  death_is_not_told,
  given_up_is_not_settled,
  slab_is_given_back_too_early,
  // segment
  torn_get_is_taken,
  reused_slot_is_taken,
  second_copy_is_left_out,
  second_copy_is_empty,
  pause_is_not_awaited,
  moved_is_read_too_early,
  // daemon
  put_uses_the_clients_bytes,
  unlock_overtakes_the_puts,
  dead_client_is_not_told,
  // store
  lock_is_ignored,
  location_is_trusted,
  absence_is_not_checked,
  home_opens_at_once,
  change_is_not_copied,
  moved_key_is_not_followed,
  departed_entry_stays_live,
  split_forgets_departure,
  covers_too_much,
  shed_chain_is_not_copied,
  rescue_is_left_out,
  checksum_is_not_checked,
  version_is_not_raised,
  unlocked_before_write,
  entry_after_slot,
  moved_is_not_marked,
  dead_is_not_marked,
  redo_is_left_out,
  dead_lock_stays,
  eviction_waits_for_a_lock,
  given_up_lock_stays,
  transaction_is_not_validated,
  transaction_record_is_left_out,
  transaction_asks_nobody,
  // container
  torn_value_is_taken,
  lost_claim_is_used,
  dead_claim_stays,
  given_up_claim_stays,
  word_before_payload,
  torn_scan_is_taken,
  slot_without_room_is_filled,
  lost_pop_is_used,
  empty_without_a_look,
  dead_tickets_stay,
  given_up_tickets_stay,
  old_reply_is_taken,
  taken_comes_again,
  untaken_counts_as_handled,
  unhandled_place_is_reused,
  retraction_is_not_awaited,
  added_table_is_not_searched,
  full_table_is_passed_over,
  dead_claim_in_added_table_stays,
  reused_block_is_taken,
  given_up_block_stays,
  packed_change_is_mended,
  erased_packed_slot_is_offered
};

#ifdef DUNLIN_FAULT_INJECTION
inline FaultInjection active_fault = FaultInjection::none;
[[nodiscard]] inline bool is_injected(FaultInjection fault) noexcept {
  return fault == active_fault;
}
#else
[[nodiscard]] constexpr bool is_injected(FaultInjection) noexcept { return false; }
#endif

}  // namespace dunlin

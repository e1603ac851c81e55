#include "flaws/catalogue.hpp"

namespace dunlin::flaws {
namespace {

std::vector<Entry> of_views() {
  return {
      {Flaw::trim_is_the_leaders,
       "trim_is_the_leaders",
       "GRP-C5",
       {"finish() is called once", "and not", "which is not"},
       1,
       300},
      {Flaw::accepted_is_forgotten, "accepted_is_forgotten", "GRP-C5", {}, 0, 0},
      {Flaw::any_number_is_a_quorum,
       "any_number_is_a_quorum",
       "GRP-C5, GRP-C7, GRP-C8",
       {"has view", "which is not"},
       1,
       300},
      {Flaw::suspicion_is_taken_back, "suspicion_is_taken_back", "GRP-C1", {"go back"}, 1, 300},
      {Flaw::promise_does_not_wedge,
       "promise_does_not_wedge",
       "GRP-C4, GRP-V1",
       {"and not", "which is not"},
       1,
       300},
      {Flaw::dead_are_not_expelled,
       "dead_are_not_expelled",
       "GRP-V2",
       {"waits in view", "change, and its owner is gone"},
       1200,
       3000},
      {Flaw::leaver_tells_nobody, "leaver_tells_nobody", "GRP-V3", {"stopped in view"}, 1, 1000},
      {Flaw::epoch_is_not_the_views,
       "epoch_is_not_the_views",
       "GRP-V1",
       {"go back", "of the", "bytes that nobody sent", "exists already", "with other rows"},
       1,
       300},
      {Flaw::number_stays,
       "number_stays",
       "GRP-V1",
       {"of epoch 1 exists already", "after"},
       1,
       300},
      {Flaw::torn_row_is_read,
       "torn_row_is_read",
       "the row format",
       {"and not", "which is not", "has view"},
       260,
       3000},
  };
}

std::vector<Entry> of_messages() {
  return {
      {Flaw::stable_too_early,
       "stable_too_early",
       "MC-O3, MC-B4",
       {"which is not", "and not"},
       1,
       300},
      {Flaw::announced_too_early,
       "announced_too_early",
       "MC-B1",
       {"bytes that nobody sent", "and not", "which is not"},
       220,
       3000},
      {Flaw::carried_is_replaced_too_early,
       "carried_is_replaced_too_early",
       "MC-B6",
       {"bytes that nobody sent", "and not"},
       1,
       300},
      {Flaw::ring_reused_too_early,
       "ring_reused_too_early",
       "MC-B2",
       {"bytes that nobody sent", "and not"},
       1,
       300},
      {Flaw::copy_freed_too_early,
       "copy_freed_too_early",
       "MC-O4",
       {"bytes that nobody sent", "and not"},
       1,
       300},
      {Flaw::unsent_is_lost, "unsent_is_lost", "MC-O4", {"and not"}, 1, 300},
      {Flaw::delivered_is_sent_again, "delivered_is_sent_again", "MC-O1", {"and not"}, 1, 300},
      {Flaw::ahead_is_forgotten, "ahead_is_forgotten", "MC-O1", {"and not"}, 1, 300},
      {Flaw::null_counts_twice,
       "null_counts_twice",
       "MC-O2",
       {"bytes that nobody sent", "which is not", "and not"},
       1,
       300},
      {Flaw::nulls_cause_nulls,
       "nulls_cause_nulls",
       "MC-O6",
       {"more operations were posted", "polled"},
       1,
       300},
      {Flaw::receipts_are_not_told, "receipts_are_not_told", "progress", {"of the"}, 1, 300},
      {Flaw::room_is_not_told,
       "room_is_not_told",
       "MC-O5, progress",
       {"of the", "has no room"},
       1,
       300},
      {Flaw::long_message_sleeps, "long_message_sleeps", "progress", {"of the"}, 1, 300},
  };
}

std::vector<Entry> of_logs_and_tables() {
  return {
      {Flaw::durable_too_early,
       "durable_too_early",
       "MC-O7",
       {"which its log does not begin with", "is not in the log of"},
       1,
       300},
      {Flaw::cut_is_forgotten,
       "cut_is_forgotten",
       "MC-B5",
       {"which its log does not begin with", "is not in the log of", "comes twice"},
       1,
       300},
      {Flaw::empty_log_begins_anew,
       "empty_log_begins_anew",
       "MC-L4",
       {"is not in the log of"},
       1,
       3000},
      {Flaw::frozen_row_is_emptied, "frozen_row_is_emptied", "TAB-T4", {"go back"}, 1, 300},
  };
}

}  // namespace

std::span<const Entry> catalogue() {
  static const std::vector<Entry> entries = [] {
    std::vector<Entry> all = of_views();
    for (const std::vector<Entry>& more : {of_messages(), of_logs_and_tables()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return entries;
}

}  // namespace dunlin::flaws

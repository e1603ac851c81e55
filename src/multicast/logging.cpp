#include <algorithm>

#include "assert.hpp"
#include "fault_injection.hpp"
#include "multicast/journal.hpp"
#include "multicast/order.hpp"
#include "multicast/row.hpp"
#include "multicast/subgroup_view.hpp"

/// The durable mode: what all have goes into the log, and is delivered once it is in all logs
/// (MC-B5).
namespace dunlin::multicast {

/// Whether more of our own log has reached the disk, or nothing more ever will.
std::size_t SubgroupView::note_persisted() {
  DUNLIN_ASSERT(journal_ != nullptr, "MC-O7: a durable subgroup has a log");
  const std::uint64_t commits = journal_->commits();
  const bool news = journal_->poll();
  const bool all =
      journal_->durable() == journal_->next() || is_injected(FaultInjection::durable_too_early);
  const std::uint64_t reached = all                                          ? logged_
                                : journal_->durable() >= committing_.records ? committing_.number
                                                                             : persisted_;
  // What it has begun to write just now is what was in it before.
  if (journal_->commits() != commits) committing_ = {journal_->next(), logged_};
  if (reached <= persisted_) return news ? 1 : 0;
  persisted_ = reached;
  for (std::size_t sender_rank = 0; sender_rank < taken_.size(); ++sender_rank)
    persisted_slots_[sender_rank] = order::slots_below(persisted_, sender_rank, taken_.size());
  changed_ = true;
  return 1;
}

/// Others may wait to hear of it: there may be a message in between.
bool SubgroupView::must_publish_persisted() const noexcept {
  return published_persisted_ < persisted_ &&
         order::next_message(published_persisted_, std::nullopt, taken_, real_) < persisted_;
}

/// Appends what has become stable, in the order of numbers: so all members' logs are the same as
/// far as they go.
std::size_t SubgroupView::log_stage() {
  if (!changed_) return 0;
  find_stable();
  std::size_t records = 0;
  for (;;) {
    std::size_t next = 0;
    std::uint64_t lowest = kNoSlot;
    for (std::size_t sender_rank = 0; sender_rank < logging_.size(); ++sender_rank) {
      ToLog& source = logging_[sender_rank];
      if (source.next_slot == kNoSlot) source.next_slot = source.cursor.next(real_[sender_rank]);
      if (source.next_slot == kNoSlot) continue;
      const std::uint64_t number =
          order::sequence_of(source.next_slot, sender_rank, logging_.size());
      if (number < lowest) next = sender_rank;
      lowest = std::min(lowest, number);
    }
    if (lowest >= stable_) break;
    journal_->append(sources_[next].member, logging_[next].cursor.take());
    logging_[next].next_slot = kNoSlot;
    ++records;
  }
  logged_ = stable_;
  spend(records, 0);
  return records + note_persisted();
}

/// Below this number, every message is in the logs of all members.
void SubgroupView::find_persisted() noexcept {
  deliverable_ = stable_;
  for (std::size_t member = 0; member < others_persisted_.size(); ++member) {
    const std::uint64_t persisted = member == me_ ? persisted_ : others_persisted_[member];
    if (persisted >= deliverable_) continue;
    deliverable_ =
        std::min(deliverable_, order::next_message(persisted, std::nullopt, taken_, real_));
  }
}

/// The view has ended: what does not count is taken out of the log.
void SubgroupView::cut_log(std::span<const std::uint64_t> trim) noexcept {
  std::uint64_t records = 0;
  for (std::size_t sender_rank = 0; sender_rank < logging_.size(); ++sender_rank) {
    RingCursor counted = sources_[sender_rank].cursor;
    while (counted.next(real_[sender_rank]) < trim[sender_rank]) counted.take();
    const std::uint64_t logged = logging_[sender_rank].cursor.records();
    records += logged - std::min(logged, counted.records());
  }
  if (!is_injected(FaultInjection::cut_is_forgotten)) journal_->cut(records);
}

}  // namespace dunlin::multicast

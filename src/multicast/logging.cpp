#include <algorithm>

#include "assert.hpp"
#include "flaw.hpp"
#include "multicast/epoch.hpp"
#include "multicast/journal.hpp"
#include "multicast/order.hpp"
#include "multicast/row.hpp"

/// The durable mode: what all have goes into the log, and is delivered once it is in all logs
/// (MC-B5).
namespace dunlin::multicast {

/// Whether more of our own log has reached the disk, or nothing more ever will.
std::size_t Epoch::note_persisted() {
  DUNLIN_ASSERT(journal_ != nullptr, "MC-O7: a durable subgroup has a log");
  const std::uint64_t commits = journal_->commits();
  const bool news = journal_->poll();
  const bool all = journal_->durable() == journal_->next() || flawed(Flaw::durable_too_early);
  const std::uint64_t reached = all                                          ? logged_
                                : journal_->durable() >= committing_.records ? committing_.number
                                                                             : persisted_;
  // What it has begun to write just now is what was in it before.
  if (journal_->commits() != commits) committing_ = {journal_->next(), logged_};
  if (reached <= persisted_) return news ? 1 : 0;
  persisted_ = reached;
  for (std::size_t seat = 0; seat < taken_.size(); ++seat)
    persisted_turns_[seat] = order::turns_below(persisted_, seat, taken_.size());
  changed_ = true;
  return 1;
}

/// Others may wait to hear of it: there may be a message in between.
bool Epoch::must_say_persisted() const noexcept {
  return said_persisted_ < persisted_ &&
         order::next_message(said_persisted_, std::nullopt, taken_, real_) < persisted_;
}

/// Appends what has become stable, in the order of numbers: so all members' logs are the same as
/// far as they go.
std::size_t Epoch::log_stage() {
  if (!changed_) return 0;
  find_stable();
  std::size_t records = 0;
  for (;;) {
    std::size_t next = 0;
    std::uint64_t lowest = kNoTurn;
    for (std::size_t seat = 0; seat < logging_.size(); ++seat) {
      ToLog& source = logging_[seat];
      if (source.next_turn == kNoTurn) source.next_turn = source.cursor.next(real_[seat]);
      if (source.next_turn == kNoTurn) continue;
      const std::uint64_t number = order::number_of(source.next_turn, seat, logging_.size());
      if (number < lowest) next = seat;
      lowest = std::min(lowest, number);
    }
    if (lowest >= stable_) break;
    journal_->append(sources_[next].member, logging_[next].cursor.take());
    logging_[next].next_turn = kNoTurn;
    ++records;
  }
  logged_ = stable_;
  spend(records, 0);
  return records + note_persisted();
}

/// Below this number, every message is in the logs of all members.
void Epoch::find_persisted() noexcept {
  deliverable_ = stable_;
  for (std::size_t member = 0; member < others_persisted_.size(); ++member) {
    const std::uint64_t persisted = member == me_ ? persisted_ : others_persisted_[member];
    if (persisted >= deliverable_) continue;
    deliverable_ =
        std::min(deliverable_, order::next_message(persisted, std::nullopt, taken_, real_));
  }
}

/// The view has ended: what does not count is taken out of the log.
void Epoch::cut_log(std::span<const std::uint64_t> trim) noexcept {
  std::uint64_t records = 0;
  for (std::size_t seat = 0; seat < logging_.size(); ++seat) {
    RingCursor counted = sources_[seat].cursor;
    while (counted.next(real_[seat]) < trim[seat]) counted.take();
    const std::uint64_t logged = logging_[seat].cursor.records();
    records += logged - std::min(logged, counted.records());
  }
  if (!flawed(Flaw::cut_is_forgotten)) journal_->cut(records);
}

}  // namespace dunlin::multicast

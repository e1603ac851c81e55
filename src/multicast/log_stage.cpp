#include "multicast/log_stage.hpp"

#include <algorithm>

#include "assert.hpp"
#include "multicast/journal.hpp"
#include "multicast/order.hpp"
#include "multicast/row.hpp"

namespace dunlin::multicast {

LogStage::LogStage(ViewMemory& memory, Receipts& receipts)
    : memory_(memory),
      receipts_(receipts),
      journal_(*memory.options().journal),
      committing_{.records = journal_.next()},
      persisted_slots_(memory.senders()),
      others_persisted_(memory.members()) {
  for (std::size_t sender_rank = 0; sender_rank < memory.senders(); ++sender_rank)
    sources_.push_back({.cursor = RingCursor(memory.ring_of(sender_rank))});
}

void LogStage::note_others() noexcept {
  for (std::size_t member = 0; member < others_persisted_.size(); ++member) {
    if (member == memory_.me()) continue;
    const std::uint64_t persisted = memory_.seen(member, row::kPersisted);
    if (persisted <= others_persisted_[member]) continue;
    others_persisted_[member] = persisted;
    receipts_.note_change();
  }
}

std::size_t LogStage::note_own() {
  const std::uint64_t commits = journal_.commits();
  const bool news = journal_.poll();
  const bool all = journal_.durable() == journal_.next();
  std::uint64_t reached = persisted_;
  if (all) {
    reached = logged_;
  } else if (journal_.durable() >= committing_.records) {
    reached = committing_.number;
  }
  // The commit that has just begun covers all that was appended before.
  if (journal_.commits() != commits) committing_ = {.records = journal_.next(), .number = logged_};
  if (reached <= persisted_) return news ? 1 : 0;
  persisted_ = reached;
  for (std::size_t sender_rank = 0; sender_rank < persisted_slots_.size(); ++sender_rank)
    persisted_slots_[sender_rank] =
        order::slots_below(persisted_, sender_rank, persisted_slots_.size());
  receipts_.note_change();
  return 1;
}

std::size_t LogStage::append_stable() {
  if (!receipts_.changed()) return 0;
  receipts_.find_stable();
  std::size_t records = 0;
  for (Next next = next_to_append(); next.number < receipts_.stable(); next = next_to_append()) {
    Source& source = sources_[next.sender_rank];
    journal_.append(memory_.options().senders[next.sender_rank], source.cursor.take());
    source.next_slot = kNoSlot;
    ++records;
  }
  logged_ = receipts_.stable();
  memory_.spend(records, 0);
  return records + note_own();
}

LogStage::Next LogStage::next_to_append() noexcept {
  Next next;
  for (std::size_t sender_rank = 0; sender_rank < sources_.size(); ++sender_rank) {
    Source& source = sources_[sender_rank];
    if (source.next_slot == kNoSlot)
      source.next_slot = source.cursor.next(receipts_.real()[sender_rank]);
    if (source.next_slot == kNoSlot) continue;
    const std::uint64_t number = order::sequence_of(source.next_slot, sender_rank, sources_.size());
    if (number < next.number) next = {.sender_rank = sender_rank, .number = number};
  }
  return next;
}

bool LogStage::worth_publishing(std::uint64_t published) const noexcept {
  return order::worth_publishing(published, persisted_, std::nullopt, receipts_.taken(),
                                 receipts_.real());
}

std::uint64_t LogStage::deliverable() const noexcept {
  std::uint64_t deliverable = receipts_.stable();
  for (std::size_t member = 0; member < others_persisted_.size(); ++member) {
    const std::uint64_t persisted = member == memory_.me() ? persisted_ : others_persisted_[member];
    if (persisted >= deliverable) continue;
    deliverable = std::min(deliverable, order::next_message(persisted, std::nullopt,
                                                            receipts_.taken(), receipts_.real()));
  }
  return deliverable;
}

void LogStage::cut(std::span<const std::uint64_t> trim,
                   std::span<const RingCursor> delivered) noexcept {
  DUNLIN_ASSERT(trim.size() == sources_.size() && delivered.size() == sources_.size(),
                "MC-B5: the trim says of each sender how much counts");
  std::uint64_t records = 0;
  for (std::size_t sender_rank = 0; sender_rank < sources_.size(); ++sender_rank) {
    RingCursor counted = delivered[sender_rank];
    while (counted.next(receipts_.real()[sender_rank]) < trim[sender_rank]) counted.take();
    const std::uint64_t logged = sources_[sender_rank].cursor.records();
    records += logged - std::min(logged, counted.records());
  }
  journal_.cut(records);
}

}  // namespace dunlin::multicast

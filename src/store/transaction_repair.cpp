#include <algorithm>
#include <cstring>

#include <dunlin/fabric/memory.hpp>

#include "store/state.hpp"

/// STO-8. Completes or undoes a transaction whose writer is gone: each home that finds its lock
/// looks into the writer's record. If one home that is left has the mark there, all do what their
/// records say; else none has done anything yet, and the locks are given back.
namespace dunlin::store {

/// The record for that lock word, whole.
std::optional<std::size_t> State::record_of(std::uint64_t lock, Image& record) noexcept {
  const Rank owner = lock_word::owner_of(lock);
  if (owner >= progress.capacity()) return std::nullopt;
  record.reserve(kTransactionBytes);
  for (std::size_t i = 0; i < kTransactionRecords; ++i) {
    memory::fetch(record.data(), redo.memory().data() + transaction_at(owner, i),
                  kTransactionBytes);
    TransactionHead head;
    std::memcpy(&head, record.data(), sizeof head);
    if (head.lock != lock || head.state >> 2 != lock_word::serial_of(lock) ||
        head.items > kMaxTransactionWrites || head.homes > kMaxTransactionHomes ||
        checksum_of(head, record.data()) != head.checksum)
      continue;
    return i;
  }
  return std::nullopt;
}

State::Fate State::fate_of(std::uint64_t lock) {
  for (const auto& inquiry : inquiries) {
    if (inquiry->lock != lock) continue;
    if (!inquiry->is_answered) return Fate::unknown;
    return inquiry->is_committed ? Fate::done : Fate::not_done;
  }
  Image record;
  const auto number = record_of(lock, record);
  if (!number) return Fate::not_done;
  TransactionHead head;
  std::memcpy(&head, record.data(), sizeof head);
  if (head.state == state_word(lock_word::serial_of(lock), TransactionState::committed))
    return Fate::done;
  if (head.homes <= 1) return Fate::not_done;
  auto inquiry = std::make_unique<TransactionInquiry>();
  inquiry->lock = lock;
  inquiry->record = *number;
  inquiry->homes = head.homes;
  inquiry->ranks = head.ranks;
  inquiries.push_back(std::move(inquiry));
  look_again_soon();
  return Fate::unknown;
}

void State::redo_transaction(std::uint64_t lock, const Place& main) noexcept {
  Image record;
  if (!record_of(lock, record)) return;
  TransactionHead head;
  std::memcpy(&head, record.data(), sizeof head);
  for (std::uint32_t i = 0; i < head.items; ++i) {
    TransactionItem item;
    std::memcpy(&item, record.data() + sizeof head + i * sizeof item, sizeof item);
    if (item.chain == main.encoded() && item.at != 0) redo_item(item);
  }
  ++counters.repaired_entries;
}

/// As the writer would have done it; once or again.
void State::redo_item(const TransactionItem& item) noexcept {
  const std::uint64_t offset = item.at >> 1;
  const std::span<std::byte> part = (item.at & 1) != 0 ? small->own_memory() : index.memory();
  if (offset % kWordBytes != 0 || offset + kSlotBytes > part.size()) return;
  std::byte* const at = part.data() + offset;
  if (slot_word::type_of(item.word) == SlotType::header) {
    memory::store(word_at(at), item.word);
    return;
  }
  if (item.former_word != 0) {
    const Location location = slot_word::location_of(item.former_word);
    std::byte* const entry = own_entry(location);
    if (entry != nullptr &&
        incarnation_of(memory::load(word_at(entry))) == incarnation_of(item.former_guard))
      memory::store(word_at(entry), item.former_guard);
    // Its block is free once the slot has been switched. If the writer has done that, it may have
    // freed it, too.
    if (entry != nullptr && memory::load(word_at(at + kWordBytes)) == item.former_word)
      free_later(location);
  }
  memory::store(word_at(at), item.hash);
  memory::store(word_at(at + kWordBytes), item.word);
}

// --- asking the other homes ----------------------------------------------------------------------

/// Returns how many questions have been answered.
std::size_t State::inquire() {
  if (inquiries.empty()) return 0;
  std::size_t answered = 0;
  for (const auto& inquiry : inquiries) {
    if (!inquiry->is_answered) ask(*inquiry);
    if (!inquiry->is_answered) continue;
    ++answered;
    if (!inquiry->is_committed) continue;
    // For those that ask this home.
    const Rank owner = lock_word::owner_of(inquiry->lock);
    memory::store(word_at(redo.memory().data() + transaction_at(owner, inquiry->record)),
                  state_word(lock_word::serial_of(inquiry->lock), TransactionState::committed));
  }
  if (answered == 0) return 0;
  members_changed();
  std::erase_if(inquiries, [](const auto& inquiry) { return inquiry->is_answered; });
  return answered;
}

/// One home after the other: whether nothing of the writer can land there any more, and then the
/// mark. A home that is gone by now has told no member anything.
void State::ask(TransactionInquiry& inquiry) noexcept {
  const Rank owner = lock_word::owner_of(inquiry.lock);
  while (inquiry.done.finished()) {
    if (rests(inquiry.rest)) return;
    if (inquiry.next >= inquiry.homes) {
      inquiry.is_answered = true;
      return;
    }
    const Rank home = inquiry.ranks.at(inquiry.next);
    const bool has_answer = inquiry.has_posted && !inquiry.done.failed();
    inquiry.has_posted = false;
    inquiry.done.reset();
    if (home >= places || home == fabric.rank() || home == owner || is_gone(home)) {
      ++inquiry.next;
      inquiry.has_heard_of_death = false;
      continue;
    }
    if (has_answer && inquiry.has_heard_of_death) {
      if (inquiry.word ==
          state_word(lock_word::serial_of(inquiry.lock), TransactionState::committed)) {
        inquiry.is_committed = inquiry.is_answered = true;
        return;
      }
      ++inquiry.next;
      inquiry.has_heard_of_death = false;
      continue;
    }
    if (has_answer) {
      inquiry.has_heard_of_death = inquiry.word >= progress.generation();
      if (!inquiry.has_heard_of_death) return begin_rest(inquiry.rest);
    }
    const Operation question =
        inquiry.has_heard_of_death
            ? read(home, redo.id(), transaction_at(owner, inquiry.record), &inquiry.word,
                   kWordBytes)
            : read(home, index.id(), kGenerationAt, &inquiry.word, kWordBytes);
    inquiry.has_posted = fabric.post(question.notify(inquiry.done)).all();
    // A home that has failed is gone as soon as the members have agreed on it.
    if (!inquiry.has_posted || fabric.failed(home)) return begin_rest(inquiry.rest);
  }
}

}  // namespace dunlin::store

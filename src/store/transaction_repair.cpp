#include "store/transaction_repair.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include <dunlin/fabric/memory.hpp>

#include "store/state.hpp"

namespace dunlin::store {

using remote::Protocol;
using remote::Status;

TransactionRepair::TransactionRepair(State& state) noexcept
    : state_(state), asking_(state.progress) {}
remote::Progress& TransactionRepair::its_progress() const noexcept { return state_.progress; }

std::optional<std::size_t> TransactionRepair::record_of(std::uint64_t lock,
                                                        Image& record) noexcept {
  const Rank owner = lock_word::owner_of(lock);
  if (owner >= state_.progress.capacity()) return std::nullopt;
  record.reserve(kTransactionBytes);
  for (std::size_t i = 0; i < kTransactionRecords; ++i) {
    memory::fetch(record.data(), state_.redo.memory().data() + transaction_at(owner, i),
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

TransactionFate TransactionRepair::fate_of(std::uint64_t lock) {
  for (const auto& inquiry : inquiries_)
    if (inquiry->lock == lock) return inquiry->fate;
  Image record;
  const auto number = record_of(lock, record);
  if (!number) return TransactionFate::not_done;
  TransactionHead head;
  std::memcpy(&head, record.data(), sizeof head);
  if (head.state == state_word(lock_word::serial_of(lock), TransactionState::committed))
    return TransactionFate::done;
  if (head.homes <= 1) return TransactionFate::not_done;
  inquiries_.push_back(std::make_unique<Inquiry>(
      Inquiry{.lock = lock, .record = *number, .homes = head.homes, .ranks = head.ranks}));
  state_.look_again_soon();
  if (!asking_.start(ask(*inquiries_.back()))) {
    inquiries_.pop_back();
    throw std::bad_alloc();
  }
  return TransactionFate::unknown;
}

void TransactionRepair::redo(std::uint64_t lock, const Place& main) noexcept {
  Image record;
  if (!record_of(lock, record)) return;
  TransactionHead head;
  std::memcpy(&head, record.data(), sizeof head);
  for (std::uint32_t i = 0; i < head.items; ++i) {
    TransactionItem item;
    std::memcpy(&item, record.data() + sizeof head + i * sizeof item, sizeof item);
    if (item.chain == main.encoded() && item.at != 0) redo_item(item);
  }
  ++state_.counters.repaired_entries;
}

/// As the writer would have done it; once or again.
void TransactionRepair::redo_item(const TransactionItem& item) noexcept {
  const std::uint64_t offset = item.at >> 1;
  const std::span<std::byte> part =
      (item.at & 1) != 0 ? state_.small->own_memory() : state_.index.memory();
  if (offset % kWordBytes != 0 || offset + kSlotBytes > part.size()) return;
  std::byte* const at = part.data() + offset;
  if (slot_word::type_of(item.word) == SlotType::header) {
    memory::store(word_at(at), item.word);
    return;
  }
  if (item.former_word != 0) {
    const Location location = slot_word::location_of(item.former_word);
    std::byte* const entry = state_.own_entry(location);
    if (entry != nullptr &&
        incarnation_of(memory::load(word_at(entry))) == incarnation_of(item.former_guard))
      memory::store(word_at(entry), item.former_guard);
    // Its block is free once the slot has been switched. If the writer has done that, it may have
    // freed it, too.
    if (entry != nullptr && memory::load(word_at(at + kWordBytes)) == item.former_word)
      state_.free_later(location);
  }
  memory::store(word_at(at), item.hash);
  memory::store(word_at(at + kWordBytes), item.word);
}

// --- asking the other homes ----------------------------------------------------------------------

std::size_t TransactionRepair::poll() {
  if (inquiries_.empty()) return 0;
  asking_.advance();
  std::size_t answered = 0;
  for (const auto& inquiry : inquiries_) {
    if (inquiry->fate == TransactionFate::unknown) continue;
    ++answered;
    if (inquiry->fate == TransactionFate::not_done) continue;
    // For those that ask this home.
    const Rank owner = lock_word::owner_of(inquiry->lock);
    memory::store(word_at(state_.redo.memory().data() + transaction_at(owner, inquiry->record)),
                  state_word(lock_word::serial_of(inquiry->lock), TransactionState::committed));
  }
  if (answered == 0) return 0;
  state_.members_changed();
  std::erase_if(inquiries_,
                [](const auto& inquiry) { return inquiry->fate != TransactionFate::unknown; });
  return answered;
}

/// A home that is gone by now has told no member anything.
bool TransactionRepair::may_be_asked(Rank home, const Inquiry& inquiry) const noexcept {
  return home < state_.places && home != state_.fabric.rank() &&
         home != lock_word::owner_of(inquiry.lock) && !state_.is_gone(home);
}

/// One home after the other: whether nothing of the writer can land there any more, and then the
/// mark.
Protocol<Status> TransactionRepair::ask(Inquiry& inquiry) {
  const std::uint64_t mark_at = transaction_at(lock_word::owner_of(inquiry.lock), inquiry.record);
  const std::uint64_t mark =
      state_word(lock_word::serial_of(inquiry.lock), TransactionState::committed);
  Rest rest;
  std::uint32_t round_trips = 0;
  for (std::uint32_t i = 0; i < inquiry.homes; ++i) {
    const Rank home = inquiry.ranks.at(i);
    bool has_heard_of_death = false, has_answered = false;
    while (!has_answered && may_be_asked(home, inquiry)) {
      std::uint64_t word = 0;
      auto question = remote::post(
          state_.fabric,
          has_heard_of_death ? read(home, state_.redo.id(), mark_at, &word, kWordBytes)
                             : read(home, state_.index.id(), kGenerationAt, &word, kWordBytes),
          HomeGate{&state_, home, &round_trips});
      const bool is_there = co_await question == Status::ok;
      if (is_there && has_heard_of_death) {
        has_answered = true;
        if (word == mark) inquiry.fate = TransactionFate::done;
      } else {
        has_heard_of_death =
            has_heard_of_death || (is_there && word >= state_.progress.generation());
        if (!has_heard_of_death || !is_there) co_await rest.next(state_.fabric);
      }
    }
    if (inquiry.fate == TransactionFate::done) co_return Status::ok;
  }
  inquiry.fate = TransactionFate::not_done;
  co_return Status::ok;
}

}  // namespace dunlin::store

#include <algorithm>
#include <cstring>

#include <dunlin/fabric/memory.hpp>

#include "store/own_chain.hpp"
#include "store/state.hpp"

/// STO-4. A member that is gone can change nothing here any more (REM-13). Each chain that it had
/// locked is repaired by its home, in own memory: readers go on, and all others wait for the lock,
/// which is given back last.
namespace dunlin::store {

void State::members_changed() {
  memory::store(word_at(index.memory().data() + kGenerationAt), progress.generation());
  for (std::uint64_t number = 0; number < main_headers(); ++number) {
    const std::uint64_t lock = memory::load(word_at(own_main(number) + kLockAt));
    if (lock == 0 || !progress.is_gone(lock_word::owner_of(lock))) continue;
    const TransactionFate fate = transaction_repair.fate_of(lock);
    if (fate == TransactionFate::unknown) continue;  // for now
    if (fate == TransactionFate::done)
      transaction_repair.redo(lock, main_header(fabric.rank(), number));
    repair_chain(own_main(number));
    if (mover != nullptr) mover->align(number);
  }
}

void State::repair_chain(std::byte* main) noexcept {
  const Rank owner = lock_word::owner_of(memory::load(word_at(main + kLockAt)));
  std::uint64_t version = memory::load(word_at(main + kVersionAt));
  for (std::byte* const bucket : OwnChain(*this, main))
    for (std::size_t i = 0; i < kSlots; ++i) repair_slot(owner, bucket + i * kSlotBytes, version);
  // A version that readers may have seen is never given again.
  memory::store(word_at(main + kVersionAt), version + 1);
  memory::store(word_at(main + kLockAt), 0);
  ++counters.repaired_locks;
}

/// An entry whose end was marked, and nothing more, ends, or comes back; one that is half written
/// is completed.
void State::repair_slot(Rank owner, std::byte* slot, std::uint64_t& version) noexcept {
  const std::uint64_t word = memory::load(word_at(slot + kWordBytes));
  if (slot_word::type_of(word) != SlotType::entry) return;
  const Location location = slot_word::location_of(word);
  std::byte* const entry = own_entry(location);
  const auto unlink = [&] {
    memory::store(word_at(slot + kWordBytes), 0);
    memory::store(word_at(slot), 0);
    ++counters.repaired_entries;
  };
  if (entry == nullptr) return unlink();
  Image image;
  image.reserve(block_bytes(location));
  memory::fetch(image.data(), entry, block_bytes(location));
  const EntryHead head = head_of(image.data());
  const std::uint64_t incarnation = incarnation_of(head.guard);
  if (state_of(head.guard) == EntryState::dead) {
    unlink();
    return free_later(location);
  }
  if (state_of(head.guard) == EntryState::moved) {
    memory::store(word_at(entry), guard_of(incarnation, EntryState::live));
    ++counters.repaired_entries;
  }
  if (is_sound(head) && entry_bytes(head) <= block_bytes(location) &&
      checksum_of(image.data(), head, location) == head.checksum) {
    version = std::max(version, head.version);
    return;
  }
  Image record;
  std::size_t bytes = 0;
  const std::byte* const whole = redo_of(owner, word, head, record, bytes);
  if (whole == nullptr) {  // no store writes such an entry
    memory::store(word_at(entry), guard_of(incarnation, EntryState::dead));
    unlink();
    return free_later(location);
  }
  const EntryHead redone = head_of(whole);
  std::memcpy(image.data(), whole, bytes);
  memory::place(entry + kWordBytes, image.data() + kWordBytes, bytes - kWordBytes);
  version = std::max(version, redone.version);
  ++counters.repaired_entries;
}

/// The newest of the owner's records for that entry.
const std::byte* State::redo_of(Rank owner, std::uint64_t word, const EntryHead& head, Image& image,
                                std::size_t& bytes) noexcept {
  if (owner >= progress.capacity()) return nullptr;
  const Location location = slot_word::location_of(word);
  Image candidate;
  candidate.reserve(kRedoBytes);
  std::uint64_t newest = 0;
  const std::byte* found = nullptr;
  for (std::size_t i = 0; i < kRedoRecords; ++i) {
    memory::fetch(candidate.data(), redo.memory().data() + redo_at(owner, i), kRedoBytes);
    RedoHead record;
    std::memcpy(&record, candidate.data(), sizeof record);
    const std::byte* const entry = candidate.data() + sizeof record;
    if (record.bytes < kEntryHeadBytes || record.bytes > kMostInPlace ||
        record.bytes > block_bytes(location) || slot_word::location_of(record.word) != location ||
        checksum_of(record, entry) != record.checksum)
      continue;
    const EntryHead redone = head_of(entry);
    if (redone.guard != guard_of(incarnation_of(head.guard), EntryState::live) ||
        !is_sound(redone) || entry_bytes(redone) != record.bytes || redone.version <= newest)
      continue;
    newest = redone.version;
    image.reserve(kMostInPlace);
    std::memcpy(image.data(), entry, record.bytes);
    bytes = record.bytes;
    found = image.data();
  }
  return found;
}

void State::free_later(const Location& location) {
  leftovers.free(location.large, {fabric.rank(), location.size_class, location.offset});
}

}  // namespace dunlin::store

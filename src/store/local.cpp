#include <algorithm>

#include <dunlin/fabric/memory.hpp>

#include "store/own_chain.hpp"
#include "store/room.hpp"
#include "store/state.hpp"

/// A member's looks at its own part.
namespace dunlin::store {

namespace {

constexpr int kTries = 64;

/// A word of a bucket in own memory.
[[nodiscard]] std::uint64_t word_of(const std::byte* at) noexcept {
  return memory::load(*reinterpret_cast<const std::uint64_t*>(at));
}

}  // namespace

std::byte* State::own_entry(const Location& location) noexcept {
  const remote::SlabPool& pool = pool_of(location);
  if (!pool.is_block(location.offset, location.size_class)) return nullptr;
  return pool.own_memory().data() + location.offset;
}

std::byte* State::own_main(std::uint64_t number) const noexcept {
  const Place place = main_header(fabric.rank(), number);
  return (place.in_slabs ? small->own_memory() : index.memory()).data() + place.offset;
}

std::byte* State::own_bucket(std::uint64_t link) noexcept {
  if (slot_word::type_of(link) != SlotType::header) return nullptr;
  const Location location = slot_word::location_of(link);
  return location.large || block_bytes(location) < sizeof(Bucket) ? nullptr : own_entry(location);
}

/// Calls with each entry of one bucket. What is under way there need not end for that: a former
/// entry is whole, and the key's, until its slot is switched, and an entry that is half written
/// will hold its redo record's content, and nothing else.
void State::see_bucket(const std::byte* main, const std::byte* bucket,
                       const std::function<void(const StoreEntry&)>& see_entry) {
  Image image, record;
  for (std::size_t i = 0; i < kSlots; ++i)
    for (int tries = 0; tries < kTries; ++tries) {
      const std::uint64_t lock = word_of(main + kLockAt);
      const std::uint64_t word = word_of(bucket + i * kSlotBytes + kWordBytes);
      if (slot_word::type_of(word) != SlotType::entry) break;
      const Location location = slot_word::location_of(word);
      const std::byte* const entry = own_entry(location);
      if (entry == nullptr) break;
      const std::size_t block = block_bytes(location);
      image.reserve(kEntryHeadBytes);
      memory::fetch(image.data(), entry, kEntryHeadBytes);
      EntryHead head = head_of(image.data());
      const std::size_t bytes = is_sound(head) ? std::min(entry_bytes(head), block) : block;
      image.reserve(bytes);
      memory::fetch(image.data(), entry, bytes);
      head = head_of(image.data());
      if (slot_word::lossy(incarnation_of(head.guard)) != slot_word::lossy_of(word)) continue;
      if (state_of(head.guard) == EntryState::dead) break;
      if (state_of(head.guard) == EntryState::unused) continue;
      const std::byte* whole = image.data();
      if (!is_sound(head) || entry_bytes(head) > bytes ||
          checksum_of(image.data(), head, location) != head.checksum) {
        std::size_t redone = 0;
        whole = redo_of(lock_word::owner_of(lock), word, head, record, redone);
        // With one lock from the first look to the last, the record is of the half written entry.
        if (whole == nullptr || lock == 0 || word_of(main + kLockAt) != lock) continue;
        head = head_of(whole);
      }
      const std::span key(whole + kEntryHeadBytes, head.key_bytes);
      if (hash_of(key) != word_of(bucket + i * kSlotBytes)) continue;
      see_entry({.key = key,
                 .value = {whole + kEntryHeadBytes + head.key_bytes, head.value_bytes},
                 .version = head.version,
                 .ttl_ns = ttl_of(fabric.rank(), head.expiry_ns)});
      break;
    }
}

void State::for_each_local(const std::function<void(const StoreEntry& entry)>& see_entry) {
  const auto if_alive = [&](const StoreEntry& entry) {
    if (entry.ttl_ns == 0) return;
    if (!has_what_counts(hash_of(entry.key))) return;
    see_entry(entry);
  };
  for (std::uint64_t number = 0; number < main_headers(); ++number) {
    std::byte* const main = own_main(number);
    for (const std::byte* const bucket : OwnChain(*this, main)) see_bucket(main, bucket, if_alive);
  }
}

/// Deaths may have left more taken off than there was.
std::uint64_t State::own_count(std::uint64_t at) const noexcept {
  const std::uint64_t count = word_of(index.memory().data() + at);
  return static_cast<std::int64_t>(count) < 0 ? 0 : count;
}

std::uint64_t State::evictions() const noexcept {
  return room == nullptr || !is_home ? 0 : room->small->evicted() + room->large->evicted();
}

StoreStatistics State::statistics() const {
  StoreStatistics all;
  all.keys = is_home ? own_count(kKeysAt) : 0;
  all.value_bytes = is_home ? own_count(kValueBytesAt) : 0;
  const remote::PoolUse in_small = small->use(), in_large = large->use();
  all.memory_bytes = in_small.bytes + in_large.bytes;
  all.memory_used = in_small.used + in_large.used;
  all.memory_held = in_small.held + in_large.held;
  all.evictions = evictions();
  all.copies_complete = has_all_copies();
  all.main_slots = main_headers() * kSlots;
  return all;
}

}  // namespace dunlin::store

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <dunlin/container/slot.hpp>
#include <dunlin/fabric/memory.hpp>

/// Slots of half a cache line, the commonest, word by word: what memory::fetch() and
/// memory::place() do with any number of bytes (FAB-M2, FAB-M3).
namespace dunlin::container {

struct SmallSlot {
  std::uint64_t word;
  std::uint64_t payload[2];
  std::uint64_t stamp;
};
static_assert(sizeof(SmallSlot) == kSmallSlotBytes);

[[gnu::always_inline]] inline std::uint64_t& word_of_slot(const std::byte* slot,
                                                          std::size_t which) noexcept {
  return *reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(slot) + which * kStampBytes);
}

[[gnu::always_inline]] inline SmallSlot fetch_small(const std::byte* slot) noexcept {
  SmallSlot seen;
  seen.stamp = memory::load(word_of_slot(slot, 3));
  seen.payload[1] = memory::load(word_of_slot(slot, 2));
  seen.payload[0] = memory::load(word_of_slot(slot, 1));
  seen.word = memory::load(word_of_slot(slot, 0));
  return seen;
}

/// Writes all but the first word: the payload, with zeros behind it, and the stamp.
[[gnu::always_inline]] inline void place_small_payload(std::byte* slot, const std::byte* payload,
                                                       std::uint32_t bytes,
                                                       std::uint64_t stamp) noexcept {
  std::uint64_t words[2] = {0, 0};
  copy_bytes(words, payload, bytes);
  memory::store(word_of_slot(slot, 1), words[0]);
  memory::store(word_of_slot(slot, 2), words[1]);
  memory::store(word_of_slot(slot, 3), stamp);
}

}  // namespace dunlin::container

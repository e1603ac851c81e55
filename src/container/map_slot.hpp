#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <dunlin/container/map_core.hpp>

#include "container/small_slot.hpp"
#include "fault_injection.hpp"

/// What a map's slot means, whether it is read into registers or as an image.
namespace dunlin::container {

/// The first word of a map's slot: docs/formats/container.md.
namespace word {
enum State : std::uint64_t { empty, reserved, ready, changing, erased, voided, half };
inline constexpr std::uint64_t kVersion = std::uint64_t{1} << 40;

[[nodiscard]] constexpr State state_of(std::uint64_t w) noexcept {
  return static_cast<State>(w & 15);
}
[[nodiscard]] constexpr std::uint16_t fingerprint_of(std::uint64_t w) noexcept {
  return static_cast<std::uint16_t>(w >> 4);
}
[[nodiscard]] constexpr std::uint64_t owner_plus_1(std::uint64_t w) noexcept {
  return w >> 20 & 0xfff;
}
[[nodiscard]] constexpr std::uint64_t with_state(std::uint64_t w, State state) noexcept {
  return (w & ~std::uint64_t{15}) | state;
}
[[nodiscard]] constexpr std::uint64_t make(std::uint64_t version, std::uint8_t serial, Rank owner,
                                           std::uint16_t fingerprint, State state) noexcept {
  return (version & 0xffffff) << 40 | std::uint64_t{serial} << 32 | std::uint64_t{owner + 1} << 20 |
         std::uint64_t{fingerprint} << 4 | state;
}
[[nodiscard]] constexpr std::uint64_t version_of(std::uint64_t w) noexcept { return w >> 40; }
static_assert(make(1, 7, 2, 0xabcd, ready) == 0x00000107003abcd2, "docs/formats/container.md");
}  // namespace word

[[nodiscard]] constexpr std::uint16_t fingerprint_of(std::uint64_t hash) noexcept {
  return static_cast<std::uint16_t>(hash * 0x9e3779b97f4a7c15ULL >> 48);
}

/// The meaning of a slot for a call that looks for a key.
enum class Sight : std::uint8_t {
  vacant,   // the end of the sequence
  other,    // another key's: look at the next
  wait,     // another call is about to change it: look again
  present,  // the key, whole
  erased,   // the key, without a value
  half      // the key; its value is half written
};

// The views of a slot say its first word, whether each line has been written (CON-M1), whether the
// key is in it, and whether it is whole.

/// A slot of any shape, in the caller's own memory.
struct SlotImage {
  const SlotShape& shape;
  std::uint32_t key_bytes;
  const std::byte* slot;

  [[nodiscard]] std::uint64_t first_word() const noexcept { return word_at(slot); }
  [[nodiscard]] bool is_written() const noexcept { return container::is_written(shape, slot); }
  [[nodiscard]] bool is_whole() const noexcept { return container::is_whole(shape, slot); }
  [[nodiscard]] bool has_key(const std::byte* key) const noexcept {
    return begins_with(shape, slot, key, key_bytes);
  }
};

/// A slot of half a cache line with a key of 8 bytes and a value of up to 8, in registers.
struct SmallMapSlot : SmallSlot {
  [[nodiscard]] std::uint64_t first_word() const noexcept { return word; }
  [[nodiscard]] bool is_written() const noexcept { return stamp != 0; }
  [[nodiscard]] bool is_whole() const noexcept { return stamp == word; }
  [[nodiscard]] bool has_key(const std::byte* key) const noexcept {
    return payload[0] == word_at(key);
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return payload[1]; }
};

/// Whether the first word says that the slot is not the key's: so most slots on a call's way are
/// passed.
[[nodiscard]] constexpr bool is_others(std::uint64_t seen, std::uint16_t fingerprint) noexcept {
  return seen != 0 &&
         (word::fingerprint_of(seen) != fingerprint || word::state_of(seen) == word::voided);
}

template <class View>
[[gnu::always_inline]] inline Sight sight_of(const View& slot, MapCall call,
                                             std::uint16_t fingerprint,
                                             const std::byte* key) noexcept {
  const std::uint64_t seen = slot.first_word();
  const word::State state = word::state_of(seen);
  if (state == word::empty) return Sight::vacant;
  if (is_others(seen, fingerprint)) return Sight::other;
  if (state == word::reserved) return takes_slot(call) ? Sight::wait : Sight::other;
  // A line that has been written once holds its part of the key for ever (CON-M1).
  if (!slot.is_written()) return Sight::wait;
  if (!slot.has_key(key)) return Sight::other;
  switch (state) {
    case word::ready:
      return slot.is_whole() || is_injected(FaultInjection::torn_value_is_taken) ? Sight::present
                                                                                 : Sight::wait;
    case word::erased:
      return Sight::erased;
    case word::half:
      return Sight::half;
    default:
      return Sight::wait;
  }
}

/// A call that claims a slot.
struct Claimant {
  Rank self;
  std::uint32_t serial;  // of its calls
  std::uint16_t fingerprint;
};

/// The word that claims a slot with the word `seen`; 0: the call changes nothing there.
[[gnu::always_inline, nodiscard]] inline std::uint64_t claim_word(MapCall call, Sight sight,
                                                                  Promise promise,
                                                                  std::uint64_t seen,
                                                                  const Claimant& by) noexcept {
  if (call == MapCall::find) return 0;
  const bool is_vacant = sight == Sight::vacant;
  word::State state = is_vacant ? word::reserved : word::changing;
  if (!takes_slot(call)) {
    if (is_vacant || sight == Sight::erased) return 0;
    state = word::erased;
  } else if (call == MapCall::insert && sight == Sight::present) {
    return 0;
  } else if (call == MapCall::add && sight == Sight::half) {
    return 0;  // of what number?
  } else if (is_vacant && (promise == Promise::writes || promise == Promise::local)) {
    state = word::ready;
  }
  return word::make(word::version_of(seen) + 1, static_cast<std::uint8_t>(by.serial), by.self,
                    by.fingerprint, state);
}

/// A value of up to 8 bytes, and zeros behind it. (A word that is written in pieces and read as a
/// whole stalls the processor.)
[[gnu::always_inline, nodiscard]] inline std::uint64_t value_at(const std::byte* at,
                                                                std::uint32_t bytes) noexcept {
  if (bytes == 8) return word_at(at);
  std::uint32_t half = 0;
  if (bytes == sizeof half) {
    std::memcpy(&half, at, sizeof half);
    return half;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, at, bytes);
  return value;
}

[[gnu::always_inline]] inline void put_value(std::byte* to, std::uint64_t value,
                                             std::uint32_t bytes) noexcept {
  if (bytes == 8)
    std::memcpy(to, &value, 8);
  else if (bytes == 4)
    std::memcpy(to, &value, 4);
  else
    std::memcpy(to, &value, bytes);
}

}  // namespace dunlin::container

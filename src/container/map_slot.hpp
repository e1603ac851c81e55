#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <dunlin/container/map_core.hpp>

#include "container/small_slot.hpp"

/// What a map's slot means, whether it is read into registers or as an image.
namespace dunlin::container {

/// The word of a map's slot: docs/formats/container.md.
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

// The word of a packed slot has other upper bits.
[[nodiscard]] constexpr std::uint64_t upper_of(std::uint64_t w) noexcept { return w >> 32; }
[[nodiscard]] constexpr std::uint64_t packed(std::uint64_t upper, std::uint64_t lower,
                                             State state) noexcept {
  return upper << 32 | with_state(lower & UINT32_MAX, state);
}
static_assert(packed(5, make(0, 0, 2, 0xabcd, empty), ready) == 0x00000005003abcd2,
              "docs/formats/container.md");
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
  half      // the key, if the slot had this word before it was read, too (CON-S4)
};

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
    // CON-S4: an erased slot keeps the word of its stamps but for the state. One that is half
    // written has no such stamps, and is given up.
    if (sight == Sight::present) return word::with_state(seen, word::erased);
    if (sight != Sight::half) return 0;
    state = word::voided;
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

/// What a call claims a packed slot with: a word with the value that it writes, if the slot is the
/// key's already (CON-K2). A slot that is not yet is reserved, by a word that no other claim has
/// (CON-K4).
[[gnu::always_inline, nodiscard]] inline std::uint64_t packed_claim(MapCall call, Sight sight,
                                                                    std::uint64_t seen,
                                                                    const Claimant& by,
                                                                    std::uint64_t value) noexcept {
  const bool found = sight == Sight::present;
  if (call == MapCall::find || (call == MapCall::insert && found)) return 0;
  if (!takes_slot(call)) return found ? word::packed(0, seen, word::erased) : 0;
  if (sight != Sight::vacant) return word::packed(value, seen, word::ready);
  return word::packed(by.serial, word::make(0, 0, by.self, by.fingerprint, word::empty),
                      word::reserved);
}

/// Where the word is in a slot.
[[nodiscard]] constexpr std::uint32_t word_offset(const SlotShape& shape) noexcept {
  return shape.is_packed() ? kStampBytes : 0;
}

// The views of a slot say its word, whether each line has been written (CON-M1), whether the key is
// in it, and whether it is whole. A packed slot whose word is ready or erased is both (CON-K1).

/// A slot of any shape, in the caller's own memory.
struct SlotImage {
  const SlotShape& shape;
  const std::byte* slot;

  [[nodiscard]] std::uint64_t its_word() const noexcept {
    return word_at(slot + word_offset(shape));
  }
  [[nodiscard]] bool is_written() const noexcept {
    return shape.is_packed() || container::is_written(shape, slot);
  }
  [[nodiscard]] bool is_whole() const noexcept {
    return shape.is_packed() || container::is_whole(shape, slot);
  }
  [[nodiscard]] bool is_whole_as(std::uint64_t stamp) const noexcept {
    return shape.is_packed() || container::has_stamps(shape, slot, stamp);
  }
  [[nodiscard]] bool has_key(const std::byte* key, std::uint32_t bytes) const noexcept {
    return shape.is_packed() ? word_at(slot) == word_at(key) : begins_with(shape, slot, key, bytes);
  }
  void read_key(std::uint32_t key_bytes, std::byte* to) const noexcept {
    if (shape.is_packed()) return copy_bytes(to, slot, key_bytes);
    decode(shape, slot, 0, key_bytes, to);
  }
  void read_value(std::uint32_t key_bytes, std::byte* to) const noexcept {
    const std::uint32_t bytes = shape.payload_bytes - key_bytes;
    if (shape.is_packed()) return copy_bytes(to, slot + kStampBytes + sizeof(std::uint32_t), bytes);
    decode(shape, slot, key_bytes, bytes, to);
  }
};

/// A slot of half a cache line with a key of 8 bytes and a value of up to 8, in registers.
struct SmallMapSlot : SmallSlot {
  [[gnu::always_inline]] static SmallMapSlot fetch(const std::byte* slot) noexcept {
    return {fetch_small(slot)};
  }
  [[nodiscard]] std::uint64_t its_word() const noexcept { return word; }
  [[nodiscard]] bool is_written() const noexcept { return stamp != 0; }
  [[nodiscard]] bool is_whole() const noexcept { return stamp == word; }
  [[nodiscard]] bool is_whole_as(std::uint64_t its_stamp) const noexcept {
    return stamp == its_stamp;
  }
  [[nodiscard]] bool has_key(const std::byte* key, std::uint32_t) const noexcept {
    return payload[0] == word_at(key);
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return payload[1]; }

  [[nodiscard]] static std::uint64_t& word_of(std::byte* slot) noexcept {
    return word_of_slot(slot, 0);
  }
  [[gnu::always_inline, nodiscard]] static std::uint64_t claim(MapCall call, Sight sight,
                                                               Promise promise, std::uint64_t seen,
                                                               const Claimant& by,
                                                               std::uint64_t) noexcept {
    return claim_word(call, sight, promise, seen, by);
  }
  /// Whether a slot with this word of a claim is still to be written.
  [[nodiscard]] static constexpr bool is_unpublished(std::uint64_t claim) noexcept {
    return word::state_of(claim) < word::erased;
  }
  /// A slot that was claimed as ready has its word already, and is whole with its last stamp:
  /// another call may have claimed it by then.
  [[gnu::always_inline]] static void publish(std::byte* slot, std::uint64_t key,
                                             std::uint64_t value, std::uint64_t claim) noexcept {
    const std::uint64_t ready = word::with_state(claim, word::ready);
    memory::store(word_of_slot(slot, 1), key);
    memory::store(word_of_slot(slot, 2), value);
    memory::store(word_of_slot(slot, 3), ready);
    if (claim != ready) memory::store(word_of_slot(slot, 0), ready);
  }
};

/// A packed slot in registers.
struct PackedSlot {
  std::uint64_t key;
  std::uint64_t word;

  /// CON-K1: the word is read first.
  [[gnu::always_inline]] static PackedSlot fetch(const std::byte* slot) noexcept {
    PackedSlot seen;
    seen.word = memory::load(word_of_slot(slot, 1));
    seen.key = memory::load(word_of_slot(slot, 0));
    return seen;
  }
  [[nodiscard]] std::uint64_t its_word() const noexcept { return word; }
  [[nodiscard]] bool is_written() const noexcept { return true; }
  [[nodiscard]] bool is_whole() const noexcept { return true; }
  [[nodiscard]] bool is_whole_as(std::uint64_t) const noexcept { return true; }
  [[nodiscard]] bool has_key(const std::byte* wanted, std::uint32_t) const noexcept {
    return key == word_at(wanted);
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return word::upper_of(word); }

  [[nodiscard]] static std::uint64_t& word_of(std::byte* slot) noexcept {
    return word_of_slot(slot, 1);
  }
  [[gnu::always_inline, nodiscard]] static std::uint64_t claim(MapCall call, Sight sight, Promise,
                                                               std::uint64_t seen,
                                                               const Claimant& by,
                                                               std::uint64_t value) noexcept {
    return packed_claim(call, sight, seen, by, value);
  }
  /// Whether a slot with this word of a claim is still to be written: a new one (CON-K2).
  [[nodiscard]] static constexpr bool is_unpublished(std::uint64_t claim) noexcept {
    return word::state_of(claim) == word::reserved;
  }
  /// CON-K1: the key comes before the word.
  [[gnu::always_inline]] static void publish(std::byte* slot, std::uint64_t its_key,
                                             std::uint64_t value, std::uint64_t claim) noexcept {
    memory::store(word_of_slot(slot, 0), its_key);
    memory::store(word_of_slot(slot, 1), word::packed(value, claim, word::ready));
  }
};

/// Whether the word says that the slot is not the key's: so most slots on a call's way are
/// passed.
[[nodiscard]] constexpr bool is_others(std::uint64_t seen, std::uint16_t fingerprint) noexcept {
  return seen != 0 &&
         (word::fingerprint_of(seen) != fingerprint || word::state_of(seen) == word::voided);
}

template <class View>
[[gnu::always_inline]] inline Sight sight_of(const View& slot, MapCall call,
                                             std::uint16_t fingerprint, const std::byte* key,
                                             std::uint32_t key_bytes) noexcept {
  const std::uint64_t seen = slot.its_word();
  const word::State state = word::state_of(seen);
  if (state == word::empty) return Sight::vacant;
  if (is_others(seen, fingerprint)) return Sight::other;
  if (state == word::reserved) return takes_slot(call) ? Sight::wait : Sight::other;
  if (!slot.is_written()) return Sight::wait;
  if (!slot.has_key(key, key_bytes)) {
    // CON-S4: the key may be that of the slot's former owner, and this one's is on its way.
    const bool is_settled =
        state == word::half || (state == word::ready && slot.is_whole()) ||
        (state == word::erased && slot.is_whole_as(word::with_state(seen, word::ready)));
    return is_settled || !takes_slot(call) ? Sight::other : Sight::wait;
  }
  switch (state) {
    case word::ready:
      return slot.is_whole() ? Sight::present : Sight::wait;
    case word::erased:  // CON-S4: else the key may be that of the slot's former owner
      return slot.is_whole_as(word::with_state(seen, word::ready)) ? Sight::erased : Sight::wait;
    case word::half:
      return Sight::half;
    default:
      return Sight::wait;
  }
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

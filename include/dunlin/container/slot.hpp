#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <dunlin/limits.hpp>

/// A slot is the place of one element in a container's memory. Each of its lines begins and ends
/// with a stamp, so that one read tells whether the payload between them is whole.
///
///  CON-S1  A reader takes a payload only if all stamps of the slot are equal to its first word.
///  CON-S2  No two contents of one slot have the same first word.
namespace dunlin::container {

inline constexpr std::uint32_t kPackedSlotBytes = kCacheLineBytes / 4;

struct SlotShape {
  std::uint32_t payload_bytes;
  std::uint32_t slot_bytes;
  std::uint32_t line_payload;  // bytes of payload in each line
  std::uint32_t lines;

  /// Whether it is a map's packed slot, which has no stamps: docs/container.md.
  [[nodiscard]] constexpr bool is_packed() const noexcept { return slot_bytes == kPackedSlotBytes; }
  [[nodiscard]] constexpr std::uint32_t line_bytes() const noexcept {
    return lines == 1 ? slot_bytes : std::uint32_t{kCacheLineBytes};
  }
};

/// A line of a caller's own memory, which slots are read into.
struct alignas(kCacheLineBytes) CacheLine {
  std::array<std::byte, kCacheLineBytes> bytes;
};
[[nodiscard]] constexpr std::size_t lines_for(std::size_t bytes) noexcept {
  return bytes == 0 ? 1 : (bytes + kCacheLineBytes - 1) / kCacheLineBytes;
}

inline constexpr std::uint32_t kStampBytes = 8;
inline constexpr std::uint32_t kSmallSlotBytes = kCacheLineBytes / 2;

/// Half a cache line, if the payload fits; whole lines otherwise.
[[nodiscard]] constexpr SlotShape shape_of(std::size_t payload_bytes) noexcept {
  constexpr std::uint32_t kSmall = kSmallSlotBytes - 2 * kStampBytes;
  constexpr std::uint32_t kLine = kCacheLineBytes - 2 * kStampBytes;
  const auto bytes = static_cast<std::uint32_t>(payload_bytes);
  if (bytes <= kSmall) return {bytes, kSmallSlotBytes, kSmall, 1};
  const std::uint32_t lines = (bytes + kLine - 1) / kLine;
  return {bytes, lines * static_cast<std::uint32_t>(kCacheLineBytes), kLine, lines};
}
[[nodiscard]] constexpr SlotShape packed_shape(std::uint32_t payload_bytes) noexcept {
  return {payload_bytes, kPackedSlotBytes, payload_bytes, 1};
}
static_assert(shape_of(16).slot_bytes == 32 && shape_of(17).slot_bytes == 64);
static_assert(shape_of(48).lines == 1 && shape_of(49).slot_bytes == 128);

[[nodiscard]] inline std::uint64_t word_at(const std::byte* at) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// As std::memcpy, which is called for sizes that are not common.
inline void copy_bytes(void* to, const void* from, std::uint32_t bytes) noexcept {
  if (bytes == 8)
    std::memcpy(to, from, 8);
  else if (bytes == 16)
    std::memcpy(to, from, 16);
  else if (bytes > 0)
    std::memcpy(to, from, bytes);
}

// These work on images of slots in the caller's own memory.

/// Fills in a slot; `stamp` becomes its first word, too.
inline void encode(const SlotShape& shape, const void* payload, std::uint64_t stamp,
                   std::byte* slot) noexcept {
  const auto* from = static_cast<const std::byte*>(payload);
  std::uint32_t left = shape.payload_bytes;
  const std::uint32_t line_bytes = shape.line_bytes();
  for (std::uint32_t line = 0; line < shape.lines; ++line, slot += line_bytes) {
    const std::uint32_t part = left < shape.line_payload ? left : shape.line_payload;
    std::memcpy(slot, &stamp, kStampBytes);
    if (part < shape.line_payload) std::memset(slot + kStampBytes, 0, shape.line_payload);
    copy_bytes(slot + kStampBytes, from, part);
    std::memcpy(slot + line_bytes - kStampBytes, &stamp, kStampBytes);
    from += part;
    left -= part;
  }
}

/// Whether all stamps behind the slot's first word are this one.
[[nodiscard]] inline bool has_stamps(const SlotShape& shape, const std::byte* slot,
                                     std::uint64_t stamp) noexcept {
  if (shape.lines == 1) return word_at(slot + shape.slot_bytes - kStampBytes) == stamp;
  const std::uint32_t line_bytes = shape.line_bytes();
  std::uint64_t different = word_at(slot + line_bytes - kStampBytes) ^ stamp;
  for (std::uint32_t line = 1; line < shape.lines; ++line) {
    slot += line_bytes;
    different |= (word_at(slot) ^ stamp) | (word_at(slot + line_bytes - kStampBytes) ^ stamp);
  }
  return different == 0;
}

/// Whether all stamps are equal to the slot's first word.
[[nodiscard]] inline bool is_whole(const SlotShape& shape, const std::byte* slot) noexcept {
  return has_stamps(shape, slot, word_at(slot));
}

/// Whether each line of the slot has been written at least once.
[[nodiscard]] inline bool is_written(const SlotShape& shape, const std::byte* slot) noexcept {
  if (shape.lines == 1) return word_at(slot + shape.slot_bytes - kStampBytes) != 0;
  const std::uint32_t line_bytes = shape.line_bytes();
  bool written = true;
  for (std::uint32_t line = 0; line < shape.lines; ++line, slot += line_bytes)
    written = written && word_at(slot + line_bytes - kStampBytes) != 0;
  return written;
}

/// Copies `bytes` of the payload from `offset` on.
inline void decode(const SlotShape& shape, const std::byte* slot, std::uint32_t offset,
                   std::uint32_t bytes, void* to) noexcept {
  auto* out = static_cast<std::byte*>(to);
  if (shape.lines == 1) return copy_bytes(out, slot + kStampBytes + offset, bytes);
  while (bytes > 0) {
    const std::uint32_t line = offset / shape.line_payload, within = offset % shape.line_payload;
    const std::uint32_t room = shape.line_payload - within;
    const std::uint32_t part = bytes < room ? bytes : room;
    copy_bytes(out, slot + line * shape.line_bytes() + kStampBytes + within, part);
    out += part;
    offset += part;
    bytes -= part;
  }
}

/// Whether the payload begins with these bytes.
[[nodiscard]] inline bool begins_with(const SlotShape& shape, const std::byte* slot,
                                      const void* key, std::uint32_t bytes) noexcept {
  const auto* wanted = static_cast<const std::byte*>(key);
  if (bytes == 8) return word_at(slot + kStampBytes) == word_at(wanted);
  while (bytes > 0) {
    const std::uint32_t part = bytes < shape.line_payload ? bytes : shape.line_payload;
    if (std::memcmp(slot + kStampBytes, wanted, part) != 0) return false;
    slot += shape.line_bytes();
    wanted += part;
    bytes -= part;
  }
  return true;
}

/// The finalizer of MurmurHash3.
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccdULL;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ x >> 33;
}

inline constexpr std::uint64_t kHashSeed = 0x9e3779b97f4a7c15ULL;

/// A hash of plain bytes, the same at all members.
[[nodiscard]] inline std::uint64_t hash_of_bytes(const void* key, std::size_t bytes) noexcept {
  const auto* from = static_cast<const std::byte*>(key);
  std::uint64_t hash = bytes * kHashSeed;
  for (; bytes >= 8; bytes -= 8, from += 8) hash = mixed(hash ^ word_at(from));
  if (bytes > 0) {
    std::uint64_t rest = 0;
    std::memcpy(&rest, from, bytes);
    hash = mixed(hash ^ rest);
  }
  return hash;
}

/// Hashes a key; those of 8 bytes, the commonest, are hashed without a loop.
[[nodiscard, gnu::always_inline]] inline std::uint64_t hash_of(const void* key,
                                                               std::size_t bytes) noexcept {
  if (bytes == 8) return mixed(8 * kHashSeed ^ word_at(static_cast<const std::byte*>(key)));
  return hash_of_bytes(key, bytes);
}

/// A number below `limit`, from 32 bits of a hash.
[[nodiscard]] constexpr std::uint32_t scale(std::uint32_t hash, std::uint32_t limit) noexcept {
  return static_cast<std::uint32_t>(std::uint64_t{hash} * limit >> 32);
}

}  // namespace dunlin::container

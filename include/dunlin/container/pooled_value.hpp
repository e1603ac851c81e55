#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include <dunlin/container/map_core.hpp>
#include <dunlin/remote/pool.hpp>

/// Values of a map that are too long for its slots lie in blocks of a pool, in the memory of the
/// member that has the slot. The slot has a *cell*: the value, or a reference to its block.
///
/// Invariants (docs/container.md explains them):
///  CON-V3  A block's stamp is in no other content of its pool's memory, ever. A reader takes a
///          block only if all stamps in it are the reference's.
///  CON-V4  A block is whole and linked before a slot refers to it.
///  CON-V5  A block is freed once, by the call that has put another content in place of the
///          reference, and not before that is in place; or by the call that has linked it, if no
///          slot ever referred to it.
namespace dunlin::container {

/// The length in a cell whose value is in the pool; a reference follows.
inline constexpr std::uint16_t kIsReference = 0xffff;

struct ValueReference {
  std::uint64_t offset = 0;  // where the block is in the pool's region
  std::uint64_t stamp = 0;
  std::uint32_t bytes = 0;  // length of the value
};
static_assert(kReferenceBytes == 8 + 8 + 4);

/// The reference in a cell; nothing if the value itself is there.
[[nodiscard]] inline std::optional<ValueReference> reference_in(const std::byte* cell) noexcept {
  std::uint16_t length = 0;
  std::memcpy(&length, cell, kLengthBytes);
  if (length != kIsReference) return std::nullopt;
  ValueReference reference;
  std::memcpy(&reference.offset, cell + kLengthBytes, 8);
  std::memcpy(&reference.stamp, cell + kLengthBytes + 8, 8);
  std::memcpy(&reference.bytes, cell + kLengthBytes + 16, 4);
  return reference;
}
/// Writes the reference into a cell whose other bytes are 0.
inline void put_reference(const ValueReference& reference, std::byte* cell) noexcept {
  std::memcpy(cell, &kIsReference, kLengthBytes);
  std::memcpy(cell + kLengthBytes, &reference.offset, 8);
  std::memcpy(cell + kLengthBytes + 8, &reference.stamp, 8);
  std::memcpy(cell + kLengthBytes + 16, &reference.bytes, 4);
}
/// The value in a cell without a reference; an invalid length is cut to the cell.
[[nodiscard]] std::span<const std::byte> value_in(const std::byte* cell,
                                                  std::uint32_t cell_bytes) noexcept;

/// How many bytes of a value a slot holds beside a key of that many bytes. `wanted` is what the
/// program asks for; 0: what is left of the cache lines that a reference needs in any case.
[[nodiscard]] std::uint32_t inline_bytes(std::uint32_t key_bytes, std::uint32_t wanted) noexcept;

/// The use of this member's memory for long values; all 0 without a pool.
[[nodiscard]] remote::PoolUse pool_use(const MapCore& map) noexcept;

}  // namespace dunlin::container

#pragma once

#include <cstdint>

#include <dunlin/fabric.hpp>
#include <dunlin/limits.hpp>

/// The contents of a lock's 64-bit word: 0 is a free lock.
///
///     63      32 31      20 19       8 7      1 0
///     ticket     member + 1 node       0        half
///
/// The last in the queue has this ticket; tickets rise by one from each to the next, so they alone
/// give the order of the queue. `half`, in a free word only: the last holder has died.
namespace dunlin::remote {

struct NodeAddress {
  Rank member = 0;
  std::uint32_t node = 0;
  friend bool operator==(const NodeAddress&, const NodeAddress&) = default;
};

/// Of a node, in 64 bits; 0 is none.
[[nodiscard]] constexpr std::uint64_t pack(NodeAddress address) noexcept {
  return (std::uint64_t{address.member} + 1) << 20 | std::uint64_t{address.node} << 8;
}
[[nodiscard]] constexpr NodeAddress unpack(std::uint64_t packed) noexcept {
  return {static_cast<Rank>((packed >> 20 & 0xfff) - 1),
          static_cast<std::uint32_t>(packed >> 8 & 0xfff)};
}

inline constexpr std::uint64_t kFreeAfterDeath = 1;

[[nodiscard]] constexpr bool is_free(std::uint64_t word) noexcept {
  return word == 0 || word == kFreeAfterDeath;
}
[[nodiscard]] constexpr std::uint32_t ticket_of(std::uint64_t word) noexcept {
  return static_cast<std::uint32_t>(word >> 32);
}
[[nodiscard]] constexpr std::uint64_t lock_word(std::uint32_t ticket, NodeAddress tail) noexcept {
  return std::uint64_t{ticket} << 32 | pack(tail);
}
/// Whether that ticket was drawn before the other; they wrap around.
[[nodiscard]] constexpr bool earlier(std::uint32_t ticket, std::uint32_t other) noexcept {
  return static_cast<std::int32_t>(ticket - other) < 0;
}

/// A node's two words in its member's memory, a cache line a node.
inline constexpr std::uint64_t kNodeBytes = kCacheLineBytes;
inline constexpr std::uint64_t kGrantWord = 0;  // the predecessor writes it: the lock is yours
inline constexpr std::uint64_t kNextWord = 8;   // the successor writes it: here I am
inline constexpr std::uint64_t kGranted = 1;
inline constexpr std::uint64_t kGrantedAfterDeath = 3;
inline constexpr std::uint64_t kNoLock = 4;  // in a repair's message only: there is no such lock

static_assert(unpack(pack({1023, 1023})) == NodeAddress{1023, 1023});
static_assert(unpack(lock_word(UINT32_MAX, {7, 5})) == NodeAddress{7, 5});
// The example of docs/formats/segment.md.
static_assert(lock_word(2, {1, 5}) == 0x0000000200200500);
static_assert(pack({0, 0}) != 0 && !is_free(lock_word(0, {0, 0})));
static_assert(earlier(UINT32_MAX, 1) && !earlier(1, UINT32_MAX));

}  // namespace dunlin::remote

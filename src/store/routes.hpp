#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/slot_map.hpp"

namespace dunlin::store {

/// What a call has to know of a key's slot, in one word, which differs from each former one:
///   63..32 epoch | 18 lost | 17 open | 16 has copies | 15..0 owner
namespace route {
inline constexpr std::uint64_t kCopies = 1 << 16;
inline constexpr std::uint64_t kOpen = 1 << 17;
inline constexpr std::uint64_t kLost = 1 << 18;

[[nodiscard]] constexpr Rank owner(std::uint64_t word) noexcept { return word & 0xffff; }
/// Whether calls may go to the owner.
[[nodiscard]] constexpr bool is_open(std::uint64_t word) noexcept { return (word & kOpen) != 0; }
[[nodiscard]] constexpr bool is_lost(std::uint64_t word) noexcept { return (word & kLost) != 0; }
/// Whether a change goes to other members, too: a backup, one that gets a copy, or one that has
/// become the owner meanwhile.
[[nodiscard]] constexpr bool has_copies(std::uint64_t word) noexcept {
  return (word & kCopies) != 0;
}
[[nodiscard]] inline std::uint64_t of(const PlacedSlot& slot) noexcept {
  const bool copies =
      slot.backups.front() != kNobody || slot.incoming != kNobody || slot.former != kNobody;
  return std::uint64_t{slot.epoch} << 32 |
         (slot.lost()    ? kLost
          : slot.settled ? kOpen
                         : 0) |
         (copies ? kCopies : 0) | slot.owner;
}
}  // namespace route

/// The slot map as this process acts on it: it takes a change of the map over, and only then tells
/// the others that it knows the change. All words are 0 before there is a map.
class Routes {
 public:
  [[nodiscard]] std::uint64_t of(std::uint64_t hash) const noexcept {
    return words_[hash >> (64 - bits_)];
  }
  /// How often any of them has changed.
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }
  /// But for those that are lost.
  [[nodiscard]] bool all_open() const noexcept { return closed_ == 0; }
  [[nodiscard]] bool some_lost() const noexcept { return lost_ > 0; }

  /// One for each slot.
  [[nodiscard]] const std::vector<std::uint64_t>& words() const noexcept { return words_; }
  /// For good: this process is not told of changes any more.
  void close();
  /// Takes over these slots, and all for the first time.
  void take_over(const SlotMap& map, const std::vector<std::uint32_t>& changed);

 private:
  std::vector<std::uint64_t> words_ = {0, 0};
  unsigned bits_ = 1;
  std::uint64_t changes_ = 0;
  std::size_t closed_ = 2;  // neither open nor lost
  std::size_t lost_ = 0;
};

}  // namespace dunlin::store

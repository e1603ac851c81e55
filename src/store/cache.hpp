#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <dunlin/limits.hpp>

#include "store/format.hpp"

namespace dunlin::store {

/// The location cache: where the entries of keys are, by the hash of the key; never values. What is
/// found may be stale, or another key's with the same tag: the entry tells (STO-6). A set is a
/// cache line of eight places: a key that is found changes places with the one before it, and a new
/// key takes the last place but one. So keys that are asked for once push each other out, and none
/// that is asked for more often than they come.
///
/// Any threads. A set's first key is found without a write, so threads that ask for the same keys
/// do not take the lines from each other.
class LocationCache {
 public:
  explicit LocationCache(std::size_t bytes) : sets_(bytes / sizeof(Set)) {}

  /// A hint that find() comes soon.
  void prefetch(std::uint64_t hash) const noexcept {
    if (!sets_.empty()) __builtin_prefetch(&sets_[place_of(hash).set]);
  }
  /// Keys for which it has room.
  [[nodiscard]] std::size_t slots() const noexcept { return kWays * sets_.size(); }
  /// The second word of a slot, with at least the lines that the one had that was inserted; or 0.
  [[nodiscard]] std::uint64_t find(std::uint64_t hash) noexcept {
    if (sets_.empty()) return 0;
    const Place place = place_of(hash);
    Set& set = sets_[place.set];
    for (std::size_t i = 0; i < kWays; ++i) {
      const std::uint64_t there = set[i].load(std::memory_order_relaxed);
      if (there == 0 || tag_of(there) != place.tag) continue;
      if (i > 0) {
        move(set, i - 1, i);
        set[i - 1].store(there, std::memory_order_relaxed);
      }
      return unpacked(there);
    }
    return 0;
  }
  /// Requires a word that leads to an entry.
  void insert(std::uint64_t hash, std::uint64_t word) noexcept {
    if (sets_.empty()) return;
    const Place place = place_of(hash);
    Set& set = sets_[place.set];
    std::size_t to = kWays;  // where the key is; else the first place that is empty
    for (std::size_t i = 0; i < kWays; ++i) {
      const std::uint64_t there = set[i].load(std::memory_order_relaxed);
      const bool is_key = there != 0 && tag_of(there) == place.tag;
      if (is_key || (there == 0 && to == kWays)) to = i;
      if (is_key) break;
    }
    if (to == kWays) {
      to = kWays - 2;
      move(set, to, to + 1);
    }
    set[to].store(place.tag << kTagShift | packed(word), std::memory_order_relaxed);
  }
  void erase(std::uint64_t hash) noexcept {
    if (sets_.empty()) return;
    const Place place = place_of(hash);
    for (auto& there : sets_[place.set])
      if (tag_of(there.load(std::memory_order_relaxed)) == place.tag)
        there.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kWays = 8;
  struct alignas(kCacheLineBytes) Set : std::array<std::atomic<std::uint64_t>, kWays> {};
  static_assert(sizeof(Set) == kCacheLineBytes);
  struct Place {
    std::size_t set = 0;
    std::uint64_t tag = 0;
  };

  // A location: 63..52 tag | 51..50 quarters of the block that the entry fills, minus 1 |
  //             49..36 incarnation, lossy | 35..0 where, as in a slot; 0: none, as no block is at
  //             0.
  static constexpr unsigned kTagShift = 52, kQuartersShift = 50, kLossyShift = 36;
  static constexpr std::uint64_t kWhere = (std::uint64_t{1} << kLossyShift) - 1;
  static constexpr unsigned kWhereInWord = 12, kLossyInWord = 48;

  [[nodiscard]] static std::uint64_t tag_of(std::uint64_t location) noexcept {
    return location >> kTagShift;
  }
  [[nodiscard]] static std::uint64_t packed(std::uint64_t word) noexcept {
    const std::size_t quarter = block_bytes(slot_word::location_of(word)) / 4;
    const std::size_t beyond_first = (slot_word::bytes_of(word) - 1) / quarter;
    const std::uint64_t quarters = beyond_first < 3 ? beyond_first : 3;
    return quarters << kQuartersShift | slot_word::lossy_of(word) << kLossyShift |
           (word >> kWhereInWord & kWhere);
  }
  [[nodiscard]] static std::uint64_t unpacked(std::uint64_t location) noexcept {
    const std::uint64_t word = std::uint64_t{static_cast<std::uint8_t>(SlotType::entry)} << 62 |
                               (location >> kLossyShift & 0x3fff) << kLossyInWord |
                               (location & kWhere) << kWhereInWord;
    const std::size_t quarter = block_bytes(slot_word::location_of(word)) / 4;
    const std::size_t bytes = quarter * ((location >> kQuartersShift & 3) + 1);
    return word | slot_word::lines_of(bytes);
  }
  static void move(Set& set, std::size_t from, std::size_t to) noexcept {
    set[to].store(set[from].load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  /// Of any number of sets. The upper bits of a hash choose the home, so all bits count here: a
  /// client of one home uses all sets.
  [[nodiscard]] Place place_of(std::uint64_t hash) const noexcept {
    __extension__ using Wide = unsigned __int128;
    constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;
    const std::uint64_t mixed = hash * kGoldenRatio;
    return {.set = static_cast<std::size_t>(Wide{mixed} * sets_.size() >> 64U),
            .tag = mixed & ((std::uint64_t{1} << (64 - kTagShift)) - 1)};
  }

  std::vector<Set> sets_;
};

}  // namespace dunlin::store

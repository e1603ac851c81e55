#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <dunlin/limits.hpp>

namespace dunlin::store {

/// The location cache: second words of slots, by the hash of their key; never values. A location in
/// it may be stale (STO-6). A set is a cache line of four places: a key that is found moves to the
/// first one, and a new key takes the second. So keys that are asked for once push each other out,
/// and none that is asked for more often than they come.
///
/// Any threads. What one finds while another moves places may be the hash of one key with the word
/// of another: a location that is wrong, which the entry tells as it tells a stale one. Found keys
/// that are the first of their set already write nothing, so threads that ask for the same keys do
/// not take the lines from each other.
class LocationCache {
 public:
  explicit LocationCache(std::size_t bytes) : sets_(bytes / sizeof(Set)) {}

  /// A hint that find() comes soon.
  void prefetch(std::uint64_t hash) const noexcept {
    if (!sets_.empty()) __builtin_prefetch(&sets_[place_of(hash)]);
  }
  /// Keys for which it has room.
  [[nodiscard]] std::size_t slots() const noexcept { return kWays * sets_.size(); }
  /// The word, or 0.
  [[nodiscard]] std::uint64_t find(std::uint64_t hash) noexcept {
    if (sets_.empty()) return 0;
    Set& set = sets_[place_of(hash)];
    for (std::size_t i = 0; i < kWays; ++i) {
      if (set[i].hash() != hash) continue;
      const std::uint64_t word = set[i].word();
      if (word == 0) continue;
      if (i > 0) {
        make_room(set, 0, i);
        set[0].set(hash, word);
      }
      return word;
    }
    return 0;
  }
  void insert(std::uint64_t hash, std::uint64_t word) noexcept {
    if (sets_.empty()) return;
    Set& set = sets_[place_of(hash)];
    std::size_t to = kWays - 1;
    for (std::size_t i = kWays; i-- > 0;) {
      const std::uint64_t there = set[i].word();
      if (there != 0 && set[i].hash() == hash) return set[i].set(hash, word);
      if (there == 0) to = i;
    }
    const std::size_t first = to == 0 ? 0 : 1;
    make_room(set, first, to);
    set[first].set(hash, word);
  }
  void erase(std::uint64_t hash) noexcept {
    if (sets_.empty()) return;
    for (Place& place : sets_[place_of(hash)])
      if (place.hash() == hash) place.set(hash, 0);
  }

 private:
  static constexpr std::size_t kWays = 4;
  class Place {
   public:
    [[nodiscard]] std::uint64_t hash() const noexcept {
      return hash_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t word() const noexcept {
      return word_.load(std::memory_order_relaxed);
    }
    void set(std::uint64_t hash, std::uint64_t word) noexcept {
      hash_.store(hash, std::memory_order_relaxed);
      word_.store(word, std::memory_order_relaxed);
    }

   private:
    std::atomic<std::uint64_t> hash_ = 0;
    std::atomic<std::uint64_t> word_ = 0;
  };
  struct alignas(kCacheLineBytes) Set : std::array<Place, kWays> {};
  static_assert(sizeof(Set) == kCacheLineBytes);

  /// Those from `first` on move one further, over the one at `to`.
  static void make_room(Set& set, std::size_t first, std::size_t to) noexcept {
    for (std::size_t i = to; i > first; --i) set[i].set(set[i - 1].hash(), set[i - 1].word());
  }
  /// Of any number of sets. The upper bits of a hash choose the home, so all bits count here: a
  /// client of one home uses all sets.
  [[nodiscard]] std::size_t place_of(std::uint64_t hash) const noexcept {
    __extension__ using Wide = unsigned __int128;
    constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;
    return static_cast<std::size_t>(Wide{hash * kGoldenRatio} * sets_.size() >> 64U);
  }

  std::vector<Set> sets_;
};

}  // namespace dunlin::store

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <dunlin/limits.hpp>

namespace dunlin::store {

/// The location cache: second words of slots, by the hash of their key; never values. A location in
/// it may be stale (STO-6). A set is a cache line of four places: a key begins in the last one, and
/// each time it is found it changes places with the one before it. So a key that is asked for once
/// pushes out another such key, and none that is asked for often.
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
    for (std::size_t way = 0; way < kWays; ++way) {
      if (set[way].hash != hash || set[way].word == 0) continue;
      const std::uint64_t word = set[way].word;
      if (way > 0) std::swap(set[way], set[way - 1]);
      return word;
    }
    return 0;
  }
  void insert(std::uint64_t hash, std::uint64_t word) noexcept {
    if (sets_.empty()) return;
    Set& set = sets_[place_of(hash)];
    Place* to = &set.back();
    for (Place& place : set) {
      if (place.hash == hash && place.word != 0) {
        to = &place;
        break;
      }
      if (place.word == 0 && to->word != 0) to = &place;
    }
    *to = {.hash = hash, .word = word};
  }
  void erase(std::uint64_t hash) noexcept {
    if (sets_.empty()) return;
    for (Place& place : sets_[place_of(hash)])
      if (place.hash == hash) place.word = 0;
  }

 private:
  static constexpr std::size_t kWays = 4;
  struct Place {
    std::uint64_t hash = 0;
    std::uint64_t word = 0;
  };
  struct alignas(kCacheLineBytes) Set : std::array<Place, kWays> {};
  static_assert(sizeof(Set) == kCacheLineBytes);

  /// Any number of sets: the hash, as a fraction of all hashes.
  [[nodiscard]] std::size_t place_of(std::uint64_t hash) const noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::size_t>(Wide{hash} * sets_.size() >> 64U);
  }

  std::vector<Set> sets_;
};

}  // namespace dunlin::store

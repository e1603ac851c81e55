#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <dunlin/limits.hpp>

namespace dunlin::store {

/// The location cache: second words of slots, by the hash of their key; never values. A location in
/// it may be stale (STO-6). A set is a cache line of four places: a key that is found moves to the
/// first one, and a new key takes the second. So keys that are asked for once push each other out,
/// and none that is asked for more often than they come.
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
    const auto found = std::ranges::find_if(
        set, [&](const Place& place) { return place.hash == hash && place.word != 0; });
    if (found == set.end()) return 0;
    const Place place = *found;
    std::move_backward(set.begin(), found, found + 1);
    set.front() = place;
    return place.word;
  }
  void insert(std::uint64_t hash, std::uint64_t word) noexcept {
    if (sets_.empty()) return;
    Set& set = sets_[place_of(hash)];
    const auto known = std::ranges::find_if(
        set, [&](const Place& place) { return place.hash == hash && place.word != 0; });
    if (known != set.end()) {
      known->word = word;
      return;
    }
    const auto vacant = std::ranges::find(set, 0U, &Place::word);
    const auto to = vacant != set.end() ? vacant : set.end() - 1;
    const auto first = to == set.begin() ? to : set.begin() + 1;
    std::move_backward(first, to, to + 1);
    *first = {.hash = hash, .word = word};
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

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dunlin::store {

/// The location cache: second words of slots, by the hash of their key; never values. Two ways a
/// set; the newer one pushes the older one out. A location in it may be stale (STO-6).
class LocationCache {
 public:
  explicit LocationCache(std::size_t bytes) {
    if (bytes >= sizeof(Set)) sets_.resize(std::bit_floor(bytes / sizeof(Set)));
  }

  /// A hint that find() comes soon.
  void prefetch(std::uint64_t hash) const noexcept {
    if (!sets_.empty()) __builtin_prefetch(&sets_[hash & (sets_.size() - 1)]);
  }
  /// Keys for which it has room.
  [[nodiscard]] std::size_t slots() const noexcept { return 2 * sets_.size(); }
  /// The word, or 0.
  [[nodiscard]] std::uint64_t find(std::uint64_t hash) const noexcept {
    if (sets_.empty()) return 0;
    const Set& set = sets_[hash & (sets_.size() - 1)];
    if (set.hash[0] == hash) return set.word[0];
    return set.hash[1] == hash ? set.word[1] : 0;
  }
  void insert(std::uint64_t hash, std::uint64_t word) noexcept {
    if (sets_.empty()) return;
    Set& set = sets_[hash & (sets_.size() - 1)];
    if (set.hash[0] != hash && set.word[0] != 0) {
      set.hash[1] = set.hash[0];
      set.word[1] = set.word[0];
    }
    set.hash[0] = hash;
    set.word[0] = word;
  }
  void erase(std::uint64_t hash) noexcept {
    if (sets_.empty()) return;
    Set& set = sets_[hash & (sets_.size() - 1)];
    for (std::size_t way = 0; way < 2; ++way)
      if (set.hash[way] == hash) set.word[way] = 0;
  }

 private:
  struct Set {
    std::uint64_t hash[2];  // NOLINT(*-avoid-c-arrays): two words
    std::uint64_t word[2];  // NOLINT(*-avoid-c-arrays): likewise
  };
  static_assert(sizeof(Set) == 32);
  std::vector<Set> sets_;
};

}  // namespace dunlin::store

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "bench/store/keys.hpp"

/// The two tables that the published system compares itself with, to count their reads: in plain
/// memory, of keys alone. Keys are not 0.
namespace dunlin::bench {

/// Three hash functions, one slot each; a lookup reads the slots in turn.
class CuckooTable {
 public:
  explicit CuckooTable(std::size_t slots) : slots_(slots) {}

  /// Pushes keys on until one falls into a free slot; false if none does.
  bool insert(std::uint64_t key) {
    for (std::uint32_t pushes = 0; pushes < kMostPushes; ++pushes) {
      for (std::size_t function = 0; function < kFunctions; ++function)
        if (slots_[place(key, function)] == 0) {
          slots_[place(key, function)] = key;
          return true;
        }
      const std::size_t function = mixed(++pushes_) % kFunctions;
      std::swap(key, slots_[place(key, function)]);
    }
    return false;
  }
  [[nodiscard]] std::uint32_t reads_of(std::uint64_t key) const {
    for (std::size_t function = 0; function < kFunctions; ++function)
      if (slots_[place(key, function)] == key) return static_cast<std::uint32_t>(function + 1);
    return kFunctions;
  }

 private:
  static constexpr std::size_t kFunctions = 3;
  static constexpr std::uint32_t kMostPushes = 100'000;
  [[nodiscard]] std::size_t place(std::uint64_t key, std::size_t function) const {
    return mixed(key * (2 * function + 1) + function) % slots_.size();
  }
  std::vector<std::uint64_t> slots_;
  std::uint64_t pushes_ = 0;
};

/// Neighbourhoods of eight slots, which one read fetches; a key that cannot be moved into its own
/// goes into a list behind it, whose blocks of eight are one more read each.
class HopscotchTable {
 public:
  explicit HopscotchTable(std::size_t slots) : slots_(slots), overflow_(slots) {}

  void insert(std::uint64_t key) {
    const std::size_t home = home_of(key);
    std::optional<std::size_t> free = next_free(home);
    while (free && distance(home, *free) >= kNeighbourhood) free = nearer(*free);
    if (free) {
      slots_[*free] = key;
    } else {
      overflow_[home].push_back(key);
    }
  }
  [[nodiscard]] std::uint32_t reads_of(std::uint64_t key) const {
    const std::size_t home = home_of(key);
    for (std::size_t i = 0; i < kNeighbourhood; ++i)
      if (slots_[(home + i) % slots_.size()] == key) return 1;
    for (std::size_t i = 0; i < overflow_[home].size(); ++i)
      if (overflow_[home][i] == key) return static_cast<std::uint32_t>(2 + i / kNeighbourhood);
    return 1;
  }

 private:
  static constexpr std::size_t kNeighbourhood = 8;
  static constexpr std::size_t kSearched = 512;
  [[nodiscard]] std::size_t home_of(std::uint64_t key) const { return mixed(key) % slots_.size(); }
  [[nodiscard]] std::size_t distance(std::size_t from, std::size_t to) const {
    return (to + slots_.size() - from) % slots_.size();
  }
  [[nodiscard]] std::optional<std::size_t> next_free(std::size_t home) const {
    for (std::size_t i = 0; i < kSearched && i < slots_.size(); ++i)
      if (slots_[(home + i) % slots_.size()] == 0) return (home + i) % slots_.size();
    return std::nullopt;
  }
  /// Moves a key from before the free slot into it, so that a slot nearer by is free.
  std::optional<std::size_t> nearer(std::size_t free) {
    for (std::size_t back = kNeighbourhood - 1; back > 0; --back) {
      const std::size_t from = (free + slots_.size() - back) % slots_.size();
      if (slots_[from] == 0 || distance(home_of(slots_[from]), free) >= kNeighbourhood) continue;
      slots_[free] = std::exchange(slots_[from], 0);
      return from;
    }
    return std::nullopt;
  }
  std::vector<std::uint64_t> slots_;
  std::vector<std::vector<std::uint64_t>> overflow_;
};

}  // namespace dunlin::bench

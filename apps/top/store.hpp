#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/fabric.hpp>

#include "top/counter.hpp"

/// A key-value store's statistics (docs/formats/store-statistics.md), read from the memory of its
/// members.
namespace dunlin::top {

/// A member's part of a store, and the calls of its process.
struct StoreMember {
  /// Of the keys that the member holds.
  struct Part {
    std::uint64_t keys = 0;
    std::uint64_t value_bytes = 0;
    std::uint64_t memory_bytes = 0;
    std::uint64_t used_bytes = 0;
    std::uint64_t held_bytes = 0;   // in slabs that members hold, used or not
    std::uint64_t limit_bytes = 0;  // 0: none
    std::uint64_t main_slots = 0;
    std::uint64_t main_slots_used = 0;
    std::uint64_t indirect_headers = 0;  // used
    std::uint64_t indirect_headers_free = 0;
    std::uint64_t locked_chains = 0;
    Counter evictions = {};
  };
  Rank rank = 0;
  std::uint64_t incarnation = 0;
  std::optional<Part> part = {};  // if it holds keys
  Counter gets = {};
  Counter puts = {};
  Counter erases = {};
  Counter others = {};
  Counter lock_waits = {};
  Counter waits_for_room = {};
  Counter cache_hits = {};
  Counter cache_misses = {};
  Counter cache_stale = {};
  std::uint64_t cache_slots = 0;
  std::uint64_t in_flight = 0;

  /// Of the lookups between the two samples that the cache answered; of all, if there is only one
  /// sample; nothing without lookups.
  [[nodiscard]] std::optional<double> hit_percent() const;
  void compare(const StoreMember& before, double seconds);
};

struct StoreSample {
  std::string name = {};
  std::vector<StoreMember> members = {};  // by rank
};

/// The store's name if a published region of this name is such a page.
[[nodiscard]] std::optional<std::string_view> store_of(std::string_view region);
/// Nothing if these bytes are no such page, or one that contradicts itself.
[[nodiscard]] std::optional<StoreMember> read_store(std::span<const std::byte> memory);

}  // namespace dunlin::top

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>

#include "top/counter.hpp"

/// A segment space's statistics (docs/formats/space-statistics.md), read from the memory of its
/// members.
namespace dunlin::top {

/// A member's part of a space.
struct SpaceMember {
  /// A lock that this member holds or waits for.
  struct Lock {
    Rank home = 0;
    std::uint64_t offset = 0;
    std::uint32_t ticket = 0;
    bool held = false;
  };
  Rank rank = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t pool_bytes = 0;
  std::uint64_t used_bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t largest_free_bytes = 0;
  Counter gets = {};
  Counter puts = {};
  Counter locks = {};
  std::uint64_t in_flight = 0;
  std::vector<Lock> queued = {};

  void compare(const SpaceMember& before, double seconds);
  /// 0: all that is free is in one block; towards 1: it lies in many small ones.
  [[nodiscard]] double fragmentation() const;
};

/// A lock, its holder, and its waiters in order, as far as they are on this host.
struct SpaceLock {
  Rank home = 0;
  std::uint64_t offset = 0;
  std::optional<Rank> holder = {};
  std::vector<Rank> waiters = {};
};

struct Space {
  std::string name = {};
  std::vector<SpaceMember> members = {};  // by rank

  [[nodiscard]] std::vector<SpaceLock> locks() const;
};

/// The space's name if a published region of this name is such a page.
[[nodiscard]] std::optional<std::string_view> space_of(std::string_view region);
/// Nothing if these bytes are no such page, or one that contradicts itself.
[[nodiscard]] std::optional<SpaceMember> read_space(std::span<const std::byte> memory);
}  // namespace dunlin::top

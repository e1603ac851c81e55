#pragma once

#include <cstdint>
#include <optional>

#include <dunlin/fabric.hpp>

namespace dunlin::store {

/// Where a key is. The second one is only there with two copies, and if a second member is left.
struct KeyHomes {
  Rank first = 0;
  std::optional<Rank> second;
  bool operator==(const KeyHomes&) const = default;
  [[nodiscard]] bool has(Rank rank) const noexcept { return first == rank || second == rank; }
};

/// What is not so yet: that the positions of a home have moved; or that, at this member, its second
/// copies are made elsewhere.
struct Assumed {
  Rank mover = 0;
  Rank to = 0;
  bool has_moved = false;
  bool is_shed = false;
  bool ignores_marks = false;  // of chains whose second copies have been made elsewhere
};

/// Keys that are hashed to one home, of some positions, all at the same homes: now, and once what
/// is assumed is so.
struct KeyGroup {
  Rank home = 0;
  std::uint64_t from = 0;   // positions
  std::uint64_t below = 0;  //
  KeyHomes now;
  KeyHomes then;
};

}  // namespace dunlin::store

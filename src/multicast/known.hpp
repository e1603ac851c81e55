#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

/// How far a state that a new member is given reaches into one sender's turns of the view at hand.
namespace dunlin::multicast {

/// A part but for a last one has an eighth of the ring, so no more of them are not known to all.
inline constexpr std::size_t kMostPartsKnown = 16;

struct Known {
  std::uint64_t turns = 0;  // all below are in it
  /// Unordered: of these, the last ones that were parts of messages, but for last parts. Ascending.
  std::vector<std::uint64_t> parts = {};

  /// How many messages in it end at this turn or later.
  [[nodiscard]] std::uint64_t messages_from(std::uint64_t turn) const noexcept {
    if (turn >= turns) return 0;
    return turns - turn -
           static_cast<std::uint64_t>(std::ranges::count_if(
               parts, [&](std::uint64_t part) { return part >= turn && part < turns; }));
  }
  /// It reaches as far as the other one besides.
  void extend(const Known& other) {
    for (const std::uint64_t part : other.parts)
      if (part >= turns) parts.push_back(part);
    turns = std::max(turns, other.turns);
    if (parts.size() > kMostPartsKnown) parts.erase(parts.begin(), parts.end() - kMostPartsKnown);
  }
};

}  // namespace dunlin::multicast

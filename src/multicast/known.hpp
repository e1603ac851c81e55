#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

/// How far a state that a new member is given reaches into one sender's slots of the view at hand.
namespace dunlin::multicast {

/// A part but for a last one has an eighth of the ring, so no more of them are not known to all.
inline constexpr std::size_t kMaxKnownFragments = 16;

struct Known {
  std::uint64_t slots = 0;  // all below are in it
  /// Unordered: of these, the last ones that were parts of messages, but for last parts. Ascending.
  std::vector<std::uint64_t> fragments = {};

  /// How many messages in it end at this slot or later.
  [[nodiscard]] std::uint64_t messages_from(std::uint64_t slot) const noexcept {
    if (slot >= slots) return 0;
    return slots - slot -
           static_cast<std::uint64_t>(std::ranges::count_if(fragments, [&](std::uint64_t fragment) {
             return fragment >= slot && fragment < slots;
           }));
  }
  /// It reaches as far as the other one besides.
  void extend(const Known& other) {
    for (const std::uint64_t fragment : other.fragments)
      if (fragment >= slots) fragments.push_back(fragment);
    slots = std::max(slots, other.slots);
    if (fragments.size() > kMaxKnownFragments)
      fragments.erase(fragments.begin(), fragments.end() - kMaxKnownFragments);
  }
};

}  // namespace dunlin::multicast

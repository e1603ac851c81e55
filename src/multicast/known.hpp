#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

/// How far the state of a new member reaches into one sender's slots of the present view.
namespace dunlin::multicast {

/// Every part of a long message but the last takes an eighth of the ring; so no more than these are
/// not known to all.
inline constexpr std::size_t kMaxKnownFragments = 16;

struct Known {
  std::uint64_t slots = 0;  // the state has all below
  /// Unordered: the last of these slots that had parts of messages, but no last part. Ascending.
  std::vector<std::uint64_t> fragments = {};

  /// How many messages in the state end at this slot or later.
  [[nodiscard]] std::uint64_t messages_from(std::uint64_t slot) const noexcept {
    if (slot >= slots) return 0;
    return slots - slot -
           static_cast<std::uint64_t>(std::ranges::count_if(fragments, [&](std::uint64_t fragment) {
             return fragment >= slot && fragment < slots;
           }));
  }
  /// Makes this reach as far as the other one, too.
  void extend(const Known& other) {
    for (const std::uint64_t fragment : other.fragments)
      if (fragment >= slots) fragments.push_back(fragment);
    slots = std::max(slots, other.slots);
    if (fragments.size() > kMaxKnownFragments)
      fragments.erase(fragments.begin(), fragments.end() - kMaxKnownFragments);
  }
};

}  // namespace dunlin::multicast

#include "multicast/order.hpp"

#include <algorithm>

namespace dunlin::multicast::order {

std::uint64_t next_message(std::uint64_t from, std::optional<std::size_t> except,
                           std::span<const std::uint64_t> taken,
                           std::span<const std::uint64_t> real) noexcept {
  const std::size_t senders = taken.size();
  const std::uint64_t round = from / senders;
  const std::size_t within = from % senders;
  std::uint64_t lowest = UINT64_MAX;
  for (std::size_t s = 0; s < senders; ++s) {
    std::uint64_t slot = round + (s < within ? 1 : 0);
    // Known slots from `real` on are nulls, and all slots of `except` count as nulls.
    if (slot >= real[s] || s == except) slot = std::max(slot, taken[s]);
    lowest = std::min(lowest, sequence_of(slot, s, senders));
  }
  return lowest;
}

}  // namespace dunlin::multicast::order

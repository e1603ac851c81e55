#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <poll.h>

#include "fabric/system.hpp"

namespace dunlin::meeting {

/// Until one of them has something to say, or it is too late.
inline void sleep_in_poll(std::vector<pollfd>& watched, std::uint64_t until_ns) {
  const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
  const std::uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
  // Rounded up, or the last millisecond would be spent in a busy loop.
  const std::uint64_t wait_ms = std::min<std::uint64_t>((wait_ns + 999'999) / 1'000'000, 60'000);
  if (::poll(watched.data(), watched.size(), static_cast<int>(wait_ms)) >= 0) return;
  for (pollfd& one : watched) one.revents = 0;  // interrupted
}

}  // namespace dunlin::meeting

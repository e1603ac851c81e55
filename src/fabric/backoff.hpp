#pragma once

#include <algorithm>
#include <cstdint>

namespace dunlin {

/// The pauses between attempts: each is twice as long as the one before, up to a longest one.
class Backoff {
 public:
  constexpr Backoff(std::uint64_t shortest_ns, std::uint64_t longest_ns) noexcept
      : shortest_ns_(shortest_ns), longest_ns_(longest_ns), pause_ns_(shortest_ns) {}

  /// When the pause ends that begins now.
  [[nodiscard]] constexpr std::uint64_t after(std::uint64_t now_ns) noexcept {
    const std::uint64_t end_ns = now_ns + pause_ns_;
    pause_ns_ = std::min(2 * pause_ns_, longest_ns_);
    return end_ns;
  }
  /// Makes the next pause the shortest one.
  constexpr void reset() noexcept { pause_ns_ = shortest_ns_; }

 private:
  std::uint64_t shortest_ns_;
  std::uint64_t longest_ns_;
  std::uint64_t pause_ns_;
};

static_assert([] {
  Backoff pauses(3, 10);
  const bool grows = pauses.after(0) == 3 && pauses.after(100) == 106 && pauses.after(0) == 10 &&
                     pauses.after(0) == 10;
  pauses.reset();
  return grows && pauses.after(0) == 3;
}());

}  // namespace dunlin

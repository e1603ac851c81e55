#pragma once

#include <cstddef>
#include <cstdint>

namespace dunlin {

/// A PageSchedule says when a layer writes counters that it has to reckon: in a poll that finds
/// nothing to do, if something has changed, and in every 256th poll. So no operation waits for it.
class PageSchedule {
 public:
  /// Asked in each poll, with how much the poll has done. `digest` is called only if that is
  /// nothing; its result differs once there is something new to show.
  template <class Digest>
  [[nodiscard]] bool is_due(std::size_t done, const Digest& digest) noexcept {
    if (++polls_ % kPollsPerPage != 0) {
      if (done != 0) return false;
      const std::uint64_t now = digest();
      if (!first_ && now == shown_) return false;
      shown_ = now;
    }
    first_ = false;
    return true;
  }

 private:
  static constexpr std::uint32_t kPollsPerPage = 256;

  std::uint64_t shown_ = 0;
  bool first_ = true;
  std::uint32_t polls_ = 0;
};

}  // namespace dunlin

#pragma once

#include <cstdint>
#include <optional>

namespace dunlin::top {

/// A count since some beginning, and how fast it grows: known once there are two samples.
struct Counter {
  std::uint64_t total = 0;
  std::optional<double> per_s = std::nullopt;

  /// Nothing if the earlier count is higher: then it is not the same counter, or damaged.
  void compare(std::uint64_t before, double seconds) {
    if (before <= total && seconds > 0) per_s = static_cast<double>(total - before) / seconds;
  }
};

}  // namespace dunlin::top

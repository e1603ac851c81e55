#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace dunlin::container {

/// The load of a map's last table, from what this process's searches have met there. All parts are
/// equally full, since the hash spreads the keys evenly. One thread.
///
/// The first slot of a key that is absent is taken with the chance *a*, the load. For a key that is
/// there it was so when the key came, at loads between 0 and *a*: half of that on average. So it is
/// enough to count first slots.
class LoadEstimate {
 public:
  /// A search has ended in that table: at the key's slot, or at a vacant one.
  void note(std::uint32_t table, bool first_was_others, bool is_there) noexcept {
    if (table != table_) {
      if (table < table_) return;  // a full one
      *this = {};
      table_ = table;
    }
    const double sample = first_was_others ? (is_there ? 2 : 1) : 0;
    if (searches_ < kMemory) ++searches_;
    load_ += (sample - load_) / searches_;
    if (std::abs(load_ - shown_) > kStep) shown_ = std::round(std::min(load_, 1.0) / kStep) * kStep;
  }
  /// In steps, so that a choice which depends on it holds for a while.
  [[nodiscard]] double load() const noexcept { return shown_; }

 private:
  static constexpr double kStep = 1.0 / 16;
  static constexpr double kAssumed = 0.5;
  /// The assumption counts as so many searches, and the last ones count as this many at most.
  static constexpr double kAssumedSearches = 16;
  static constexpr double kMemory = 512;

  std::uint32_t table_ = 0;
  double searches_ = kAssumedSearches;
  double load_ = kAssumed;
  double shown_ = kAssumed;
};

/// How many other members call at the same member at once, if all call: of a container that one
/// member holds, and of one whose calls spread over all.
[[nodiscard]] constexpr double clients_of_host(std::uint32_t members) noexcept {
  return members > 2 ? members - 1 : 1;
}
[[nodiscard]] constexpr double clients_of_part(std::uint32_t members) noexcept {
  return members > 2 ? 1 + (members - 2.0) / members : 1;
}

}  // namespace dunlin::container

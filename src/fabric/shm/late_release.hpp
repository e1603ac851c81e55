#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "fabric/mapping/mapping.hpp"

/// Mappings out of use, given back to the system a while later and one at a time. To free the last
/// mapping of 3 MB takes half a millisecond, and the moment at which memory falls out of use is the
/// worst one for it: a member has died, and the others are to go on.
namespace dunlin::shm {

class LateRelease {
 public:
  static constexpr std::uint64_t kRestNs = 10'000'000;
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // the rest is freed at once

  void add(std::shared_ptr<const mapping::Mapping> mapping, std::uint64_t now_ns) noexcept;
  /// Gives one mapping back, if its time has come.
  void look(std::uint64_t now_ns) noexcept;
  /// Frees all mappings, for a caller that needs memory now. False if there was none.
  bool give_all_back() noexcept;
  /// When look() has something to do; UINT64_MAX: never.
  [[nodiscard]] std::uint64_t due_ns() const noexcept {
    return resting_.empty() ? UINT64_MAX : due_ns_;
  }

 private:
  void give_back() noexcept;

  std::deque<std::shared_ptr<const mapping::Mapping>> resting_;  // the oldest first
  std::size_t bytes_ = 0;
  std::uint64_t due_ns_ = 0;
};

}  // namespace dunlin::shm

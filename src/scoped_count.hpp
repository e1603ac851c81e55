#pragma once

#include <cstdint>

namespace dunlin {

/// A count that is one higher while this object lives, whatever is thrown.
class ScopedCount {
 public:
  explicit ScopedCount(std::uint32_t& count) noexcept : count_(count) { ++count_; }
  ScopedCount(const ScopedCount&) = delete;
  ScopedCount& operator=(const ScopedCount&) = delete;
  ~ScopedCount() { --count_; }

 private:
  std::uint32_t& count_;
};

}  // namespace dunlin

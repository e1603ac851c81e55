#pragma once

#include <cstddef>
#include <utility>

#include <dunlin/remote/protocol.hpp>

namespace dunlin::container {

/// Memory of a call that is under way; it begins on a cache line.
class CallMemory {
 public:
  CallMemory() = default;
  CallMemory(remote::FramePool& pool, std::size_t bytes) noexcept
      : at_(pool.take(bytes)), bytes_(bytes) {}
  CallMemory(CallMemory&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), bytes_(other.bytes_) {}
  CallMemory& operator=(CallMemory&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~CallMemory() {
    if (at_ != nullptr) remote::FramePool::give_back(at_, bytes_);
  }

  /// Null if there was no memory.
  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(at_); }

 private:
  void* at_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace dunlin::container

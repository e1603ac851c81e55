#pragma once

#include <atomic>
#include <cstdint>

/// The lock of a node's engine: the thread that holds it works on the node's objects (NODE-1). The
/// polling thread keeps it for many polls, and shares it with threads that wait for it.
namespace dunlin::node {

class EngineLock {
 public:
  EngineLock() = default;
  EngineLock(const EngineLock&) = delete;
  EngineLock& operator=(const EngineLock&) = delete;

  [[nodiscard]] bool try_lock() noexcept {
    std::uint32_t free = kFree;
    return state_.load(std::memory_order_relaxed) == kFree &&
           state_.compare_exchange_strong(free, kTaken, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  /// Takes the lock if it becomes free within about the time of a poll, and no thread waits for it.
  [[nodiscard]] bool try_lock_soon() noexcept;
  /// Waits for the lock. The thread that holds it, and those that try it, learn from wanted()
  /// that another one waits.
  void lock() noexcept { static_cast<void>(try_lock_for(kForever)); }
  /// Waits at most so long; returns whether this thread holds the lock.
  [[nodiscard]] bool try_lock_for(std::uint64_t timeout_ns) noexcept;
  void unlock() noexcept {
    if (state_.exchange(kFree, std::memory_order_release) == kAwaited) state_.notify_one();
  }
  [[nodiscard]] bool wanted() const noexcept {
    return wanted_.load(std::memory_order_relaxed) != 0;
  }
  /// Lets a thread that waits have the lock, and takes it back. Requires that this thread holds it.
  void share() noexcept;

 private:
  bool look_for_it(std::uint64_t timeout_ns) noexcept;
  bool sleep_for_it() noexcept;

  static constexpr std::uint64_t kForever = UINT64_MAX;
  static constexpr std::uint32_t kFree = 0, kTaken = 1, kAwaited = 2;
  alignas(128) std::atomic<std::uint32_t> state_{kFree};
  alignas(128) std::atomic<std::uint32_t> wanted_{0};
};

}  // namespace dunlin::node

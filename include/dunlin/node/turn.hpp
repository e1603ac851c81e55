#pragma once

#include <atomic>
#include <cstdint>

/// A Turn is what a thread has while it works on a node's objects: one thread at a time (NODE-1). A
/// thread that comes often keeps it for many polls, and gives it to another one that wants it.
namespace dunlin::node {

class Turn {
 public:
  Turn() = default;
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  [[nodiscard]] bool try_take() noexcept {
    std::uint32_t free = kFree;
    return state_.load(std::memory_order_relaxed) == kFree &&
           state_.compare_exchange_strong(free, kTaken, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  /// Waits for the turn. The thread that has it, and those that would take it, learn from wanted()
  /// that another one waits.
  void take() noexcept { static_cast<void>(take_within(kForever)); }
  /// Waits at most so long; returns whether this thread has the turn.
  [[nodiscard]] bool take_within(std::uint64_t timeout_ns) noexcept;
  void give() noexcept {
    if (state_.exchange(kFree, std::memory_order_release) == kAwaited) state_.notify_one();
  }
  [[nodiscard]] bool wanted() const noexcept {
    return wanted_.load(std::memory_order_relaxed) != 0;
  }
  /// Gives the turn to those that want it, and takes it back. Requires that this thread has it.
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

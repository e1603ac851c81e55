#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "fabric/system.hpp"

/// Waits for descriptors: those that a backend watches, a doorbell, and a timer for event loops
/// that wait by themselves. Only wake() may be called by any thread.
///
/// All of these stay readable until they are handled, so nothing that comes between the last poll()
/// and the wait is missed.
namespace dunlin {

class Sleeper {
 public:
  /// `bell` is an eventfd that peers may ring, too; without one, the sleeper makes its own.
  explicit Sleeper(Descriptor bell = {});
  Sleeper(Sleeper&&) noexcept = default;
  Sleeper& operator=(Sleeper&&) noexcept = default;
  ~Sleeper() = default;

  // --- descriptors -------------------------------------------------------------------------------
  static constexpr std::uint64_t kFirstOwnTag = UINT64_MAX - 15;
  [[nodiscard]] int epoll() const noexcept { return epoll_.get(); }
  /// Watches a descriptor; false if the system refuses (errno). Requires tag < kFirstOwnTag.
  [[nodiscard]] bool watch(int descriptor, std::uint64_t tag) noexcept;
  /// Must be called before the descriptor is closed: otherwise, if a forked child has the
  /// descriptor open, too, it would stay in the set, and be readable for ever.
  void forget(int descriptor) noexcept;
  /// Fills in the tags of descriptors that are readable now, and returns how many.
  [[nodiscard]] std::size_t readable(std::span<std::uint64_t> tags) noexcept;

  // --- sleeping ----------------------------------------------------------------------------------
  /// Silences a bell that rang for arrivals that the member has seen.
  void prepare() noexcept;
  /// A descriptor for loops that wait by themselves; from then on the core keeps the timer for
  /// them.
  [[nodiscard]] int descriptor_for_loop() noexcept;
  [[nodiscard]] bool serves_loop() const noexcept { return serves_loop_; }
  void set_timer(std::uint64_t at_ns) noexcept;
  /// Whether wake() was called since the last wait; forgets it.
  [[nodiscard]] bool take_wake() noexcept { return flags_->woken.exchange(false); }
  /// Waits until the time is up at the latest; returns whether nothing but the bell ended the wait.
  [[nodiscard]] bool wait(std::uint64_t timeout_ns) noexcept;
  void wake() noexcept;
  void ring() noexcept;

 private:
  static constexpr std::uint64_t kBellTag = UINT64_MAX;
  static constexpr std::uint64_t kTimerTag = UINT64_MAX - 1;
  struct Flags {
    std::atomic<bool> woken{false};
    std::atomic<bool> rings{false};  // whether the bell rings, as far as this process knows
  };
  void silence() noexcept;

  Descriptor epoll_;
  Descriptor bell_;
  Descriptor timer_;
  std::unique_ptr<Flags> flags_ = std::make_unique<Flags>();
  bool serves_loop_ = false;
};

}  // namespace dunlin

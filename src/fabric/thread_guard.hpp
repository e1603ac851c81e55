#pragma once

#include <atomic>
#include <cstdint>

namespace dunlin {

class Fabric;

/// Notices that two threads call one fabric, or objects on it, at the same time.
///
///  FAB-T1  One thread at a time calls a fabric and all objects on it. A call is under way until it
///          returns, with its upcalls; a sleep is one, too. Fabric::wake() is the exception.
///
/// Objects belong to no thread: they may be made by one and used by another, and threads that take
/// turns, under a lock of their own, may share them.
class ThreadGuard {
 public:
  /// The guard that all objects on the fabric share. A null fabric is one that they have outlived.
  [[nodiscard]] static ThreadGuard* of(const Fabric* fabric) noexcept;

  /// Marks a call that is under way in this thread; calls may be nested. Ends the process if a call
  /// of another thread is under way.
  class Call {
   public:
    explicit Call(ThreadGuard* guard) noexcept : guard_(guard) {
      if (guard_ != nullptr) guard_->enter();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() {
      if (guard_ != nullptr) guard_->leave();
    }

   private:
    ThreadGuard* guard_;
  };

  /// Called in a forked child, which has only the thread that forked: calls of other threads are
  /// not under way there.
  void in_child() noexcept;

 private:
  void enter() noexcept;
  void leave() noexcept;

  // All accesses are relaxed: they order nothing, so the thread sanitizer still sees every race.
  std::atomic<std::uintptr_t> inside_ = 0;  // the thread; 0: none
  std::uint32_t depth_ = 0;                 // how many of its calls are nested
};

}  // namespace dunlin

/// In debug and sanitizer trees, marks a call on that fabric, which lasts as long as the block. For
/// calls that may be made often; others make a ThreadGuard::Call, in every tree.
#ifdef NDEBUG
#define DUNLIN_ONE_THREAD(fabric) static_cast<void>(0)
#else
#define DUNLIN_ONE_THREAD(fabric) \
  const ::dunlin::ThreadGuard::Call dunlin_one_thread(::dunlin::ThreadGuard::of(fabric))
#endif

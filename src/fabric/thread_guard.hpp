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
  /// All objects on the fabric share it. Null: they have outlived it.
  [[nodiscard]] static ThreadGuard* of(const Fabric* fabric) noexcept;

  /// A call that is under way, in this thread; calls may be nested. Ends the process if a call of
  /// another thread is under way.
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

  /// In a child, which has only the thread that forked: calls of others are not under way there.
  void in_child() noexcept;

 private:
  void enter() noexcept;
  void leave() noexcept;

  // Relaxed accesses only: they order nothing, so the thread sanitizer sees what there is to see.
  std::atomic<std::uintptr_t> inside_ = 0;  // which thread; 0: none
  std::uint32_t depth_ = 0;                 // its calls
};

}  // namespace dunlin

/// In debug and sanitizer trees: a call on that fabric begins here, and lasts as long as the block.
/// Where a call may be made often; others make a ThreadGuard::Call, in every tree.
#ifdef NDEBUG
#define DUNLIN_ONE_THREAD(fabric) static_cast<void>(0)
#else
#define DUNLIN_ONE_THREAD(fabric) \
  const ::dunlin::ThreadGuard::Call dunlin_one_thread(::dunlin::ThreadGuard::of(fabric))
#endif

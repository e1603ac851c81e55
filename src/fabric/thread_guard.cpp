#include "fabric/thread_guard.hpp"

#include "assert.hpp"
#include "fabric/core/core.hpp"

namespace dunlin {
namespace {

[[nodiscard]] std::uintptr_t this_thread() noexcept {
  thread_local char here;
  return reinterpret_cast<std::uintptr_t>(&here);
}

}  // namespace

ThreadGuard* ThreadGuard::of(const Fabric* fabric) noexcept {
  return fabric != nullptr ? &FabricCore::guard_of(*fabric) : nullptr;
}

void ThreadGuard::enter() noexcept {
  const std::uintptr_t me = this_thread();
  std::uintptr_t inside = inside_.load(std::memory_order_relaxed);
  if (inside != me) {
    inside = 0;
    const bool alone = inside_.compare_exchange_strong(inside, me, std::memory_order_relaxed);
    DUNLIN_ASSERT_ALWAYS(
        alone,
        "FAB-T1: one thread at a time calls a fabric and the objects on it, such as a group, a "
        "topic or a store; a call of another thread is under way");
  }
  ++depth_;
}

void ThreadGuard::leave() noexcept {
  if (--depth_ == 0) inside_.store(0, std::memory_order_relaxed);
}

void ThreadGuard::in_child() noexcept {
  if (inside_.load(std::memory_order_relaxed) == this_thread()) return;
  inside_.store(0, std::memory_order_relaxed);
  depth_ = 0;
}

}  // namespace dunlin

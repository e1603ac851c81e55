#include <sched.h>

#include <dunlin/node/engine_lock.hpp>

#include "fabric/system.hpp"
#include "run/threads.hpp"

namespace dunlin::node {
namespace {

// The polling thread shares the lock after each poll, so a waiter looks for about as long, lets
// others have the processor for a while, and only then sleeps.
constexpr std::uint32_t kLooks = 256;
constexpr std::uint32_t kYields = 64;
// The polling thread that finds nothing to do releases the lock after each poll.
constexpr std::uint32_t kSoonLooks = 48;

}  // namespace

bool EngineLock::try_lock_for(std::uint64_t timeout_ns) noexcept {
  // Those that wait already come first.
  if (!wanted() && try_lock()) return true;
  wanted_.fetch_add(1, std::memory_order_relaxed);
  const bool taken = look_for_it(timeout_ns) || (timeout_ns == kForever && sleep_for_it());
  wanted_.fetch_sub(1, std::memory_order_relaxed);
  return taken;
}

bool EngineLock::try_lock_soon() noexcept {
  for (std::uint32_t look = 0; look < kSoonLooks && !wanted(); ++look) {
    if (try_lock()) return true;
    threads::pause();
  }
  return false;
}

bool EngineLock::look_for_it(std::uint64_t timeout_ns) noexcept {
  const std::uint64_t begun_ns = timeout_ns == kForever ? 0 : read_clock_ns(CLOCK_MONOTONIC);
  for (std::uint32_t look = 0; look < kLooks + kYields || timeout_ns != kForever; ++look) {
    if (try_lock()) return true;
    if (look < kLooks) {
      threads::pause();
      continue;
    }
    sched_yield();
    if (timeout_ns != kForever && read_clock_ns(CLOCK_MONOTONIC) - begun_ns >= timeout_ns)
      return false;
  }
  return false;
}

/// Takes the lock as awaited, as others may sleep, too: unlock() wakes the next one then. A sleeper
/// that took it otherwise would leave them asleep.
bool EngineLock::sleep_for_it() noexcept {
  while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree)
    state_.wait(kAwaited, std::memory_order_relaxed);
  return true;
}

void EngineLock::share() noexcept {
  unlock();
  for (std::uint32_t look = 0;
       look < kLooks && wanted() && state_.load(std::memory_order_relaxed) == kFree; ++look)
    threads::pause();
  // Where processors are few, the waiter has none yet.
  if (wanted() && state_.load(std::memory_order_relaxed) == kFree) sched_yield();
  lock();
}

}  // namespace dunlin::node

#include <sched.h>

#include <dunlin/node/turn.hpp>

#include "fabric/system.hpp"
#include "run/threads.hpp"

namespace dunlin::node {
namespace {

// A turn of the polling thread lasts one poll, so a waiter looks for about as long, lets others
// have the processor for a while, and only then sleeps.
constexpr std::uint32_t kLooks = 256;
constexpr std::uint32_t kYields = 64;

}  // namespace

bool Turn::take_within(std::uint64_t timeout_ns) noexcept {
  // Those that wait already come first.
  if (!wanted() && try_take()) return true;
  wanted_.fetch_add(1, std::memory_order_relaxed);
  const bool taken = look_for_it(timeout_ns) || (timeout_ns == kForever && sleep_for_it());
  wanted_.fetch_sub(1, std::memory_order_relaxed);
  return taken;
}

bool Turn::look_for_it(std::uint64_t timeout_ns) noexcept {
  const std::uint64_t begun_ns = timeout_ns == kForever ? 0 : read_clock_ns(CLOCK_MONOTONIC);
  for (std::uint32_t look = 0; look < kLooks + kYields || timeout_ns != kForever; ++look) {
    if (try_take()) return true;
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

/// Takes the turn as awaited, as others may sleep, too: give() wakes the next one then. A sleeper
/// that took it otherwise would leave them asleep.
bool Turn::sleep_for_it() noexcept {
  while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree)
    state_.wait(kAwaited, std::memory_order_relaxed);
  return true;
}

void Turn::share() noexcept {
  give();
  for (std::uint32_t look = 0;
       look < kLooks && wanted() && state_.load(std::memory_order_relaxed) == kFree; ++look)
    threads::pause();
  // Where processors are few, the waiter has none yet.
  if (wanted() && state_.load(std::memory_order_relaxed) == kFree) sched_yield();
  take();
}

}  // namespace dunlin::node

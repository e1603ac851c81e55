#include <sched.h>

#include <dunlin/node/turn.hpp>

#include "run/threads.hpp"

namespace dunlin::node {
namespace {

// A turn of the polling thread lasts one poll, so a waiter looks for about as long, lets others
// have the processor for a while, and only then sleeps.
constexpr std::uint32_t kLooks = 256;
constexpr std::uint32_t kYields = 64;

}  // namespace

void Turn::take() noexcept {
  if (try_take()) return;
  wanted_.fetch_add(1, std::memory_order_relaxed);
  bool taken = false;
  for (std::uint32_t look = 0; look < kLooks + kYields && !taken; ++look) {
    if (look < kLooks)
      threads::pause();
    else
      sched_yield();
    taken = try_take();
  }
  // A sleeper takes the turn as awaited, as others may sleep, too: give() wakes the next one then.
  while (!taken) {
    const std::uint32_t before = state_.exchange(kAwaited, std::memory_order_acquire);
    taken = before == kFree;
    if (!taken) state_.wait(kAwaited, std::memory_order_relaxed);
  }
  wanted_.fetch_sub(1, std::memory_order_relaxed);
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

#include <chrono>
#include <utility>

#include <sched.h>

#include <dunlin/error.hpp>
#include <dunlin/progress_thread.hpp>

#include "run/threads.hpp"

namespace dunlin {
namespace {

/// Looks in vain between two looks at the clock, and between two yields.
constexpr std::uint32_t kLooksAtOnce = 64;
/// So often a loop is asked again: no end, in other words.
constexpr std::uint32_t kLongMs = 3'600'000;

}  // namespace

ProgressThread::ProgressThread(Loop loop, Fabric& fabric, ThreadOptions options)
    : loop_(std::move(loop)), fabric_(fabric), options_(options) {
  if (options_.core != ThreadOptions::kAnyCore) turn_ = Turn::lent;  // until it is pinned
  thread_ = std::jthread([this] { work(); });
  Turn now = turn_.load(std::memory_order_acquire);
  for (; now == Turn::lent; now = turn_.load(std::memory_order_acquire)) turn_.wait(now);
  if (failure_) {
    hand(Turn::over);
    thread_.join();
    rethrow();
  }
}

ProgressThread::~ProgressThread() {
  if (thread_.joinable()) hand(Turn::over);
}

void ProgressThread::lend() {
  if (turn_.load(std::memory_order_relaxed) != Turn::owner)
    throw Error("progress thread: during() was called inside during(): the thread polls already");
  hand(Turn::lent);
}

void ProgressThread::take_back() noexcept {
  Turn lent = Turn::lent;
  if (turn_.compare_exchange_strong(lent, Turn::wanted_back, std::memory_order_acq_rel))
    fabric_.wake();
  // A poll is short; where processors are shared, the thread may have to get one first.
  for (std::uint32_t looks = 1; turn_.load(std::memory_order_acquire) != Turn::owner; ++looks) {
    if (looks % kLooksAtOnce == 0)
      sched_yield();
    else
      threads::pause();
  }
}

void ProgressThread::rethrow() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ProgressThread::hand(Turn turn) noexcept {
  turn_.store(turn, std::memory_order_release);
  turn_.notify_all();
}

/// Waits until it is not the owner's turn.
ProgressThread::Turn ProgressThread::next_turn() const noexcept {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::microseconds(options_.spin_us);
  for (std::uint32_t looks = 1;; ++looks) {
    const Turn turn = turn_.load(std::memory_order_acquire);
    if (turn != Turn::owner) return turn;
    const bool enough =
        options_.wait == Wait::block ||
        (options_.wait == Wait::adaptive && looks % kLooksAtOnce == 0 && Clock::now() >= until);
    if (enough)
      turn_.wait(Turn::owner, std::memory_order_acquire);
    else if (looks % kLooksAtOnce == 0)
      sched_yield();
    else
      threads::pause();
  }
}

void ProgressThread::work() {
  if (options_.core != ThreadOptions::kAnyCore) {
    try {
      threads::pin_to(options_.core);
    } catch (...) {
      failure_ = std::current_exception();
    }
    hand(Turn::owner);
  }
  while (next_turn() != Turn::over) {
    try {
      const auto wanted_back = [this] {
        return turn_.load(std::memory_order_relaxed) != Turn::lent;
      };
      while (!loop_.run_until(wanted_back, kLongMs)) {
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
    hand(Turn::owner);
  }
}

}  // namespace dunlin

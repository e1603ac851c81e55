#include <algorithm>
#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <dunlin/node/engine.hpp>

#include "fabric/system.hpp"
#include "run/threads.hpp"

namespace dunlin::node {
namespace {

// A call at memory speed ends while its caller looks; then the caller lets others have the
// processor.
constexpr std::uint32_t kLooks = 512;
constexpr std::uint32_t kYields = 32;

void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t value,
              std::uint64_t timeout_ns) noexcept {
  constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
  const timespec timeout{.tv_sec = static_cast<time_t>(timeout_ns / kNsPerSecond),
                         .tv_nsec = static_cast<long>(timeout_ns % kNsPerSecond)};
  // Whatever ends the wait, the caller looks again.
  static_cast<void>(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value,
                            timeout_ns >= remote::kForever / 2 ? nullptr : &timeout, nullptr, 0));
}

}  // namespace

SharedCall::SharedCall(Engine& engine, bool borrows) noexcept
    : engine_(engine.shared_from_this()), borrows_(borrows) {}
SharedCall::~SharedCall() = default;

bool SharedCall::wait(std::uint64_t timeout_ns) {
  if (ended()) return true;
  engine_->require_may_wait();
  if (std::string why = why_never(); !why.empty()) throw Error(why);
  for (std::uint32_t look = 0; look < kLooks + kYields; ++look) {
    if (look < kLooks)
      threads::pause();
    else
      sched_yield();
    if (ended()) return true;
  }
  const std::uint64_t begun_ns = read_clock_ns(CLOCK_MONOTONIC);
  for (;;) {
    std::uint32_t phase = kUnderWay;
    if (!phase_.compare_exchange_strong(phase, kBlocked, std::memory_order_acq_rel) &&
        phase == kEnded)
      return true;
    std::uint64_t left_ns = remote::kForever;
    if (timeout_ns < remote::kForever / 2) {
      const std::uint64_t passed_ns = read_clock_ns(CLOCK_MONOTONIC) - begun_ns;
      if (passed_ns >= timeout_ns) {
        phase = kBlocked;
        return !phase_.compare_exchange_strong(phase, kUnderWay, std::memory_order_acq_rel);
      }
      left_ns = timeout_ns - passed_ns;
    }
    sleep_on(phase_, kBlocked, left_ns);
    if (ended()) return true;
  }
}

std::string SharedCall::why_never() const {
  return !ended() && engine_->is_forked() ? engine_->why_stopped().text : std::string();
}

void SharedCall::then(std::function<void()> next) {
  const std::shared_ptr<Engine> engine = engine_;  // `next` may own this call, and let it go
  next_ = std::move(next);
  std::uint32_t phase = kUnderWay;
  if (!phase_.compare_exchange_strong(phase, kContinued, std::memory_order_acq_rel))
    engine->execute(std::move(next_));
}

void SharedCall::forget() noexcept {
  std::uint32_t phase = kContinued;
  if (phase_.compare_exchange_strong(phase, kUnderWay, std::memory_order_acq_rel)) next_ = nullptr;
}

bool SharedCall::leave_queue() noexcept {
  is_queued_ = false;
  if (!ended()) return true;
  release();
  return false;
}

void SharedCall::cancel() {
  if (engine_->is_forked()) return;  // its thread is in the parent
  const Engine::Held held(*engine_, Engine::Held::Patience::endless);
  if (!ended()) fail({remote::Status::abandoned, "the caller gave the call up"});
}

void SharedCall::link() noexcept { engine_->link(*this); }

void SharedCall::end() noexcept {
  engine_->unlink(*this);
  const std::uint32_t before = phase_.exchange(kEnded, std::memory_order_acq_rel);
  if (before == kBlocked)
    syscall(SYS_futex, &phase_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  if (before == kContinued) engine_->execute(std::move(next_));
  if (!is_queued_) release();
}

}  // namespace dunlin::node

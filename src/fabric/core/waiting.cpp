#include <algorithm>
#include <utility>

#include "fabric/core/core.hpp"

/// The protocol around sleeping: prepare_sleep(), one more poll(), then sleep() or cancel_sleep().
/// The fabric's own sleep() knows when it must wake up; a foreign loop must see it in a descriptor.
namespace dunlin {
namespace {

/// A sleeping member checks so often for peers that have fallen silent: if it did more seldom, it
/// could not tell a silent peer from its own sleep.
constexpr std::uint64_t kSleepingChecksPerTimeout = 4;

}  // namespace

std::uint64_t FabricCore::next_duty_ns() const noexcept {
  const std::uint64_t check_ns =
      silence_timeout_ns_ == 0
          ? UINT64_MAX
          : last_silence_check_ns_ + silence_timeout_ns_ / kSleepingChecksPerTimeout;
  return std::min({wake_at_ns_, next_beat_ns_, check_ns, backend_->next_duty_ns()});
}

/// Waking up reads no clock, because what woke the member comes first. So the first call after a
/// sleep notes the time.
std::uint64_t FabricCore::awake_since_ns() noexcept {
  if (!sleeper_ || std::exchange(has_slept_, false)) awake_since_ns_ = backend_->now_ns();
  return awake_since_ns_;
}

void FabricCore::prepare_sleep() noexcept {
  if (!sleeper_ || fabric_.forked_) return;
  sleeper_->prepare();
  prepared_ = true;
  backend_->arm();
  if (sleeper_->serves_loop()) prepare_loop();
}

void FabricCore::prepare_loop() noexcept {
  reckon_duties();
  if (has_duties_ || !backend_->may_wait()) sleeper_->ring();
}

void FabricCore::cancel_sleep() noexcept {
  if (!sleeper_ || !std::exchange(prepared_, false)) return;
  if (sleeper_->serves_loop()) static_cast<void>(sleeper_->take_wake());
  has_slept_ = true;
  backend_->disarm(false);
}

void FabricCore::sleep(std::uint64_t timeout_ns) noexcept {
  if (!sleeper_ || fabric_.forked_) return;
  bool only_rung = true;
  const bool may_wait = backend_->may_wait();
  if (!sleeper_->take_wake() && !has_duties_ && may_wait) {
    const std::uint64_t now_ns = backend_->now_ns();
    const std::uint64_t duty_ns = next_duty_ns();
    only_rung = sleeper_->wait(std::min(timeout_ns, duty_ns > now_ns ? duty_ns - now_ns : 0));
  }
  wake_at_ns_ = UINT64_MAX;
  prepared_ = false;
  has_slept_ = true;
  backend_->disarm(only_rung);
}

void FabricCore::wake_at(std::uint64_t time_ns) noexcept {
  if (!sleeper_) return backend_->poll_at(time_ns);
  wake_at_ns_ = std::min(wake_at_ns_, time_ns);
  reckon_duties();
}

int FabricCore::wait_descriptor() noexcept {
  if (!sleeper_) return -1;
  const bool is_first = !sleeper_->serves_loop();
  const int descriptor = sleeper_->descriptor_for_loop();
  if (is_first && prepared_) prepare_loop();
  return descriptor;
}

void FabricCore::reckon_duties() noexcept {
  if (prepared_ && sleeper_->serves_loop()) sleeper_->set_timer(next_duty_ns());
}

}  // namespace dunlin

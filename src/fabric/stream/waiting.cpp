#include <algorithm>
#include <array>
#include <utility>

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "fabric/stream/stream_fabric.hpp"

/// Sleeping on what the transport waits for, a bell for wake(), and a timer for our own duties. All
/// of them stay readable until they are looked after, so nothing that comes between the last poll()
/// and the sleep is missed.
namespace dunlin::stream {
namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
/// While a peer may still write without waking us.
constexpr std::uint64_t kLongestNapNs = 500'000;

timespec as_timespec(std::uint64_t time_ns) noexcept {
  return {static_cast<time_t>(time_ns / kNsPerSecond), static_cast<long>(time_ns % kNsPerSecond)};
}

}  // namespace

std::uint64_t StreamFabric::now_ns() const noexcept { return read_clock_ns(CLOCK_MONOTONIC); }

/// Whether the next poll() has something to do that no descriptor tells of.
bool StreamFabric::has_work() const noexcept {
  return must_drain_ || must_match_ || !doomed_.empty() || must_tell_expelled();
}

std::uint64_t StreamFabric::next_duty_ns() const noexcept {
  const std::uint64_t check_ns = silence_timeout_ns_ == 0 ? UINT64_MAX : next_silence_check_ns_;
  const std::uint64_t nap_ns = unnoted_ == 0 ? UINT64_MAX : recent_ns_ + kLongestNapNs;  // B4
  return std::min({wake_at_ns_, next_beat_ns_, check_ns, nap_ns});
}

/// Our own sleep() looks after everything itself; a foreign loop must see it in the descriptor.
void StreamFabric::prepare_sleep() noexcept {
  look_timer_.expire();  // for the last poll() before the sleep, from which duties are reckoned
  silence_bell();
  presence_.show_asleep(true);
  if (reach_ != nullptr) doze();
  if (!foreign_loop_) return;
  set_timer(next_duty_ns());
  if (has_work() || !transport_->may_wait()) ring();
}

int StreamFabric::wait_descriptor() const noexcept {
  if (!std::exchange(foreign_loop_, true)) ring();  // it may be between prepare and wait already
  return epoll_.get();
}

void StreamFabric::cancel_sleep() noexcept {
  look_timer_.expire();
  presence_.show_asleep(false);
  if (foreign_loop_) last_doze_ns_ = now_ns();
}

void StreamFabric::sleep(std::uint64_t timeout_ns) noexcept {
  if (!unsent_.empty()) send_all();
  if (!woken_.exchange(false) && !has_work() && transport_->may_wait()) wait(timeout_ns);
  look_timer_.expire();
  last_doze_ns_ = now_ns();
  wake_at_ns_ = UINT64_MAX;
  presence_.show_asleep(false);
}

void StreamFabric::wait(std::uint64_t timeout_ns) noexcept {
  const std::uint64_t now = now_ns();
  const std::uint64_t duty = next_duty_ns();
  timeout_ns = std::min(timeout_ns, duty > now ? duty - now : 0);
  const timespec timeout = as_timespec(timeout_ns);
  std::array<epoll_event, 4> events;
  epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()), &timeout, nullptr);
  woken_.store(false);
}

/// First the bell, then the word that it rings: so it may ring once too often, but not for ever.
void StreamFabric::ring() const noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(bell_.get(), &one, sizeof one));
  bell_rings_.store(true);
}

/// A wake() that was not slept through rings again.
void StreamFabric::silence_bell() noexcept {
  if (!bell_rings_.exchange(false)) return;
  std::uint64_t rings = 0;
  static_cast<void>(!::read(bell_.get(), &rings, sizeof rings));
  if (woken_.load()) ring();
}

/// For foreign event loops; our own sleep() knows when to wake up.
void StreamFabric::set_timer(std::uint64_t at_ns) noexcept {
  itimerspec when{};
  if (at_ns != UINT64_MAX) when.it_value = as_timespec(std::max<std::uint64_t>(at_ns, 1));
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void StreamFabric::wake() noexcept {
  woken_.store(true);
  ring();
}

void StreamFabric::wake_at(std::uint64_t time_ns) noexcept {
  wake_at_ns_ = std::min(wake_at_ns_, time_ns);
}

}  // namespace dunlin::stream

#include <algorithm>
#include <array>

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "fabric/shm/shm_fabric.hpp"
#include "fabric/shm/tags.hpp"

/// Going to sleep without missing anything; docs/fabric.md has the proof.
///  W1  The sleeper sets `sleeping`, then makes a barrier on all processors, then polls once more,
///      and sleeps only if that found nothing.
///  W2  A writer places its bytes, then looks at `sleeping`.
///  W3  Between the two the writer's compiler keeps the order, and its processor by a fence of its
///      own or the sleeper's barrier: so the poll sees the bytes or the writer sees `sleeping`.
///  W4  A writer that finds the number of a sleep in `sleeping` rings the bell, then changes it
///      from that number to 0. The bell stays rung until the sleeper, awake again, silences it.
///  W5  An alarm wakes the sleeper in time for its heartbeat and its appointments.
namespace dunlin::shm {
namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::uint64_t kUnsentPacketsRetryNs = 10'000'000;

timespec to_timespec(std::uint64_t ns) noexcept {
  return {static_cast<time_t>(ns / kNsPerSecond), static_cast<long>(ns % kNsPerSecond)};
}

int wait_for_events(const Descriptor& epoll, std::span<epoll_event> events,
                    std::uint64_t timeout_ns) noexcept {
  const timespec timeout = to_timespec(timeout_ns);
  // Before Linux 5.11 there is none, and a container's filter may forbid it.
  static std::atomic<bool> has_pwait2{true};
  if (has_pwait2.load(std::memory_order_relaxed)) {
    const int count = epoll_pwait2(epoll.get(), events.data(), static_cast<int>(events.size()),
                                   &timeout, nullptr);
    if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return count;
    has_pwait2.store(false, std::memory_order_relaxed);
  }
  const auto timeout_ms =
      static_cast<int>(std::min<std::uint64_t>(timeout_ns / 1'000'000 + 1, INT32_MAX));
  return epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
}

}  // namespace

std::uint64_t ShmFabric::now_ns() const noexcept { return read_clock_ns(CLOCK_MONOTONIC); }

void ShmFabric::prepare_sleep() noexcept {
  if (bell_rings_) silence_bell();
  prepared_ = true;
  set_alarm();
  memory::exchange(&own_->sleeping, ++sleeps_);  // a full fence, for the writers who fence, too
  if (self_.has_barriers) barrier_on_all_processors();
}

/// Instead of a sleep(), or after one of a foreign loop, which may have been woken by anything.
void ShmFabric::cancel_sleep() noexcept {
  if (!prepared_) return;
  get_up();
  woken_.store(false);
  watch_now_ = true;
  look_soon();
}

void ShmFabric::sleep(std::uint64_t timeout_ns) noexcept {
  const bool rung = memory::load(own_->sleeping) == 0;
  if (!rung && !woken_.exchange(false)) wait(timeout_ns);
  wake_at_ns_ = UINT64_MAX;
  get_up();
}

void ShmFabric::get_up() noexcept {
  prepared_ = false;
  memory::store(own_->sleeping, 0);
}

void ShmFabric::wait(std::uint64_t timeout_ns) noexcept {
  std::array<epoll_event, 4> events;
  const int count = wait_for_events(epoll_, events, timeout_ns);
  woken_.store(false);
  look_soon();  // the time that recent_ns() gives is that of before the sleep
  for (int i = 0; i < count; ++i) {
    const std::uint64_t tag = events[static_cast<std::size_t>(i)].data.u64;
    if (tag == kBellTag)
      silence_bell();
    else
      watch_now_ = true;  // a peer's word, its death, or our own heartbeat
    if (tag == kAlarmTag) alarm_went_off();
  }
}

/// An alarm that comes too early costs less than setting it anew for each sleep.
void ShmFabric::set_alarm() noexcept {
  std::uint64_t wanted_ns = wake_at_ns_;
  if (beat_interval_ns_ != UINT64_MAX)
    wanted_ns = std::min(wanted_ns, last_watch_ns_ + beat_interval_ns_);
  wanted_ns = std::min(wanted_ns, late_.due_ns());
  if (outgoing_ > 0) wanted_ns = std::min(wanted_ns, recent_ns_ + kUnsentPacketsRetryNs);
  if (alarm_ns_ <= wanted_ns) return;
  alarm_ns_ = wanted_ns;
  const itimerspec at{.it_interval = {},
                      .it_value = to_timespec(std::max<std::uint64_t>(wanted_ns, 1))};
  timerfd_settime(alarm_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
}

void ShmFabric::alarm_went_off() noexcept {
  std::uint64_t times = 0;
  static_cast<void>(!::read(alarm_.get(), &times, sizeof times));
  if (wake_at_ns_ <= alarm_ns_) wake_at_ns_ = UINT64_MAX;
  alarm_ns_ = UINT64_MAX;
}

void ShmFabric::silence_bell() noexcept {
  std::uint64_t rings = 0;
  static_cast<void>(!::read(bell_.get(), &rings, sizeof rings));
  bell_rings_ = false;
  if (woken_.load()) wake();  // that was not the peers' alone
}

void ShmFabric::wake() noexcept {
  woken_.store(true);
  const std::uint64_t one = 1;
  static_cast<void>(!::write(bell_.get(), &one, sizeof one));
}

void ShmFabric::wake_at(std::uint64_t time_ns) noexcept {
  wake_at_ns_ = std::min(wake_at_ns_, time_ns);
  if (prepared_) set_alarm();
}

}  // namespace dunlin::shm

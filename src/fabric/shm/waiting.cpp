#include <algorithm>
#include <array>

#include <sys/epoll.h>
#include <unistd.h>

#include "fabric/shm/shm_fabric.hpp"
#include "fabric/shm/tags.hpp"

/// Going to sleep without missing anything; docs/fabric.md has the proof.
///  W1  The sleeper sets `sleeping`, then makes a barrier on all processors, then polls once more,
///      and sleeps only if that found nothing.
///  W2  A writer places its bytes, then looks at `sleeping`.
///  W3  Between the two the writer's compiler keeps the order, and its processor by a fence of its
///      own or the sleeper's barrier: so the poll sees the bytes or the writer sees `sleeping`.
///  W4  Who changes `sleeping` from 1 to 0 rings the bell, which stays rung until the sleeper,
///  awake
///      again, silences it.
///  W5  The sleeper wakes by itself in time for its heartbeat.
namespace dunlin::shm {
namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::uint64_t kUnsentPacketsRetryNs = 10'000'000;

int wait_for_events(const Descriptor& epoll, std::span<epoll_event> events,
                    std::uint64_t timeout_ns) noexcept {
  const timespec timeout{static_cast<time_t>(timeout_ns / kNsPerSecond),
                         static_cast<long>(timeout_ns % kNsPerSecond)};
  const int count =
      epoll_pwait2(epoll.get(), events.data(), static_cast<int>(events.size()), &timeout, nullptr);
  if (count >= 0 || errno != ENOSYS) return count;
  const auto timeout_ms =
      static_cast<int>(std::min<std::uint64_t>(timeout_ns / 1'000'000 + 1, INT32_MAX));
  return epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
}

}  // namespace

std::uint64_t ShmFabric::now_ns() const noexcept { return read_clock_ns(CLOCK_MONOTONIC); }

void ShmFabric::prepare_sleep() noexcept {
  if (bell_rings_) silence_bell();
  memory::exchange(&own_->sleeping, 1);  // a full fence, for the writers who fence, too
  if (self_.has_barriers) barrier_on_all_processors();
}

void ShmFabric::cancel_sleep() noexcept { memory::store(own_->sleeping, 0); }

void ShmFabric::sleep(std::uint64_t timeout_ns) noexcept {
  const bool rung = memory::load(own_->sleeping) == 0;
  if (!rung && !woken_.exchange(false)) wait(timeout_ns);
  wake_at_ns_ = UINT64_MAX;
  cancel_sleep();
}

void ShmFabric::wait(std::uint64_t timeout_ns) noexcept {
  const std::uint64_t now = now_ns();
  beat(now);
  timeout_ns = std::min(timeout_ns, beat_interval_ns_);
  timeout_ns = std::min(timeout_ns, wake_at_ns_ > now ? wake_at_ns_ - now : 0);
  if (outgoing_ > 0) timeout_ns = std::min(timeout_ns, kUnsentPacketsRetryNs);
  std::array<epoll_event, 4> events;
  const int count = wait_for_events(epoll_, events, timeout_ns);
  woken_.store(false);
  look_soon();  // the time that recent_ns() gives is that of before the sleep
  const bool only_the_bell = count == 1 && events[0].data.u64 == kBellTag;
  for (int i = 0; i < count; ++i)
    if (events[static_cast<std::size_t>(i)].data.u64 == kBellTag) silence_bell();
  if (only_the_bell) return;
  watch_now_ = true;  // a peer's word, its death, or our own heartbeat
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
}

}  // namespace dunlin::shm

#include "fabric/core/sleeper.hpp"

#include <algorithm>
#include <array>

#include <sys/eventfd.h>
#include <sys/timerfd.h>

namespace dunlin {
namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::size_t kMaxEvents = 64;

timespec as_timespec(std::uint64_t ns) noexcept {
  return {static_cast<time_t>(ns / kNsPerSecond), static_cast<long>(ns % kNsPerSecond)};
}

int wait_for_events(const Descriptor& epoll, std::span<epoll_event> events,
                    std::uint64_t timeout_ns) noexcept {
  const timespec timeout = as_timespec(timeout_ns);
  // Linux has epoll_pwait2 since 5.11, and a container's filter may forbid it.
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

Sleeper::Sleeper(Descriptor bell)
    : epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "making an epoll descriptor")),
      bell_(bell
                ? std::move(bell)
                : Descriptor(checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "making an eventfd"))),
      timer_(
          checked(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "making a timer")) {
  for (const auto& [descriptor, tag] :
       {std::pair(bell_.get(), kBellTag), {timer_.get(), kTimerTag}})
    if (!watch(descriptor, tag))
      throw Error("watching a fabric's doorbell and timer failed: " + error_text(errno));
}

bool Sleeper::watch(int descriptor, std::uint64_t tag) noexcept {
  return watch_in(epoll_.get(), EPOLL_CTL_ADD, descriptor, EPOLLIN | EPOLLRDHUP, {.u64 = tag}) == 0;
}

void Sleeper::forget(int descriptor) noexcept {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

std::size_t Sleeper::readable(std::span<std::uint64_t> tags) noexcept {
  std::array<epoll_event, kMaxEvents> events;
  const auto most = static_cast<int>(std::min(events.size(), tags.size()));
  const int count = epoll_wait(epoll_.get(), events.data(), most, 0);
  std::size_t found = 0;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t tag = events[static_cast<std::size_t>(i)].data.u64;
    if (tag == kBellTag) flags_->rings.store(true);
    if (tag < kFirstOwnTag) tags[found++] = tag;
  }
  return found;
}

void Sleeper::prepare() noexcept {
  if (flags_->rings.load()) silence();
}

int Sleeper::descriptor_for_loop() noexcept {
  serves_loop_ = true;
  return epoll_.get();
}

void Sleeper::set_timer(std::uint64_t at_ns) noexcept {
  itimerspec when{};
  if (at_ns != UINT64_MAX) when.it_value = as_timespec(std::max<std::uint64_t>(at_ns, 1));
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

bool Sleeper::wait(std::uint64_t timeout_ns) noexcept {
  std::array<epoll_event, 4> events;
  const int count = wait_for_events(epoll_, events, timeout_ns);
  bool rang = false;
  for (int i = 0; i < count; ++i) rang |= events[static_cast<std::size_t>(i)].data.u64 == kBellTag;
  flags_->woken.store(false);
  if (rang) silence();
  return rang && count == 1;
}

/// Rings the bell first, then sets the word: so the bell may ring once too often, but not for ever.
void Sleeper::ring() noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(bell_.get(), &one, sizeof one));  // if it is full, it rings anyway
  flags_->rings.store(true);
}

/// Silences the bell; a wake() that no sleep has seen rings again.
void Sleeper::silence() noexcept {
  flags_->rings.store(false);
  std::uint64_t rings = 0;
  static_cast<void>(!::read(bell_.get(), &rings, sizeof rings));
  if (flags_->woken.load()) ring();
}

void Sleeper::wake() noexcept {
  flags_->woken.store(true);
  ring();
}

}  // namespace dunlin

#include "fabric/stepped_join.hpp"

#include <algorithm>

#include <sys/timerfd.h>

namespace dunlin {
namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kLongestWaitMs = 60'000;

Descriptor new_epoll() {
  return Descriptor(checked(epoll_create1(EPOLL_CLOEXEC), "making an epoll descriptor"));
}

/// Adds a descriptor. It is no fault if it is there twice, or cannot be waited for because it is
/// always ready.
void listen_for(const Descriptor& epoll, int descriptor, std::uint32_t events) {
  if (watch_in(epoll.get(), EPOLL_CTL_ADD, descriptor, events) != 0 && errno != EEXIST)
    checked(-1, "watching a descriptor");
}

}  // namespace

bool Awaited::is_here() noexcept {
  const int ready = ::poll(descriptors.data(), descriptors.size(), 0);
  if (ready > 0) return true;
  if (ready < 0)
    for (pollfd& one : descriptors) one.revents = 0;
  return read_clock_ns(CLOCK_MONOTONIC) >= until_ns;
}

void Awaited::wait() noexcept {
  const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
  const std::uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
  // The time is rounded up, or the last millisecond would be spent in a busy loop.
  const std::uint64_t wait_ms =
      std::min(wait_ns / kNsPerMs + (wait_ns % kNsPerMs != 0 ? 1 : 0), kLongestWaitMs);
  ::poll(descriptors.data(), descriptors.size(), static_cast<int>(wait_ms));
}

AwaitedDescriptor::AwaitedDescriptor()
    : outer_(new_epoll()),
      timer_(
          checked(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "making a timer")) {
  listen_for(outer_, timer_.get(), EPOLLIN);
}

void AwaitedDescriptor::set(const Awaited& awaited) {
  Descriptor inner = new_epoll();
  for (const pollfd& one : awaited.descriptors)
    if (one.fd >= 0) listen_for(inner, one.fd, static_cast<std::uint32_t>(one.events));
  if (inner_) epoll_ctl(outer_.get(), EPOLL_CTL_DEL, inner_.get(), nullptr);
  inner_ = std::move(inner);
  listen_for(outer_, inner_.get(), EPOLLIN);
  itimerspec when{};
  if (awaited.until_ns != UINT64_MAX) {
    const std::uint64_t at_ns = std::max<std::uint64_t>(awaited.until_ns, 1);  // 0 would be never
    when.it_value = {static_cast<time_t>(at_ns / kNsPerSecond),
                     static_cast<long>(at_ns % kNsPerSecond)};
  }
  checked(timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr), "setting a timer");
}

template <class Interface>
std::unique_ptr<Fabric> Stepped<Interface>::poll() {
  if (over_) throw Error("the forming of this fabric is over: begin it anew");
  if (!awaited_.is_here()) return nullptr;
  over_ = true;  // stays true if step() throws
  if (std::unique_ptr<Fabric> fabric = step()) return fabric;
  awaited_ = awaited();
  if (descriptor_) descriptor_->set(awaited_);
  over_ = false;
  return nullptr;
}

template <class Interface>
int Stepped<Interface>::wait_descriptor() const noexcept {
  try {
    if (!descriptor_) {
      auto made = std::make_unique<AwaitedDescriptor>();
      made->set(awaited_);
      descriptor_ = std::move(made);
    }
    return descriptor_->get();
  } catch (const std::exception&) {
    return -1;  // without a free descriptor, the next poll() reports that
  }
}

template <class Interface>
std::unique_ptr<Fabric> Stepped<Interface>::run() {
  for (;;) {
    if (std::unique_ptr<Fabric> fabric = poll()) return fabric;
    awaited_.wait();
  }
}

template class Stepped<PendingJoin>;
template class Stepped<PendingEntry>;

}  // namespace dunlin

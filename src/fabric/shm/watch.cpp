#include <algorithm>

#include <sys/socket.h>

#include "fabric/shm/shm_fabric.hpp"

namespace dunlin::shm {
namespace {

constexpr std::uint64_t kWatchIntervalNs = 500'000;
/// Reading the processor's counter costs some 10 ns, the clock 25 to 70, the rest of a poll() 1 to
/// 2. A member that polls fast and then slowly beats its heart only after so many slow polls.
constexpr std::uint32_t kPollsPerTicks = 4;
constexpr std::uint64_t kSilenceChecksPerTimeout = 16;

}  // namespace

std::size_t ShmFabric::poll() noexcept {
  const bool quiet = memory::load(own_->pending) == 0;
  if (--polls_until_ticks_ != 0 && quiet) [[likely]]
    return 0;
  return poll_slowly();
}

std::size_t ShmFabric::poll_slowly() noexcept {
  handled_ = 0;
  if (polls_until_ticks_ == 0) look_at_clock();
  if (memory::load(own_->pending) != 0) handle_pending();
  return handled_;
}

/// Polls that are far apart all look; only those of which several fit between two looks skip some.
void ShmFabric::look_at_clock() {
  const std::uint64_t ticks = read_ticks();
  if (!look_timer_.over(ticks)) {
    polls_until_ticks_ = kPollsPerTicks;
    return;
  }
  polls_until_ticks_ = 1;
  const std::uint64_t now = now_ns();
  look_timer_.restart(ticks, now);
  recent_ns_ = now;
  if (watch_now_ || now - last_watch_ns_ >= kWatchIntervalNs) watch(now);
}

/// The next poll() does.
void ShmFabric::look_soon() noexcept {
  polls_until_ticks_ = 1;
  look_timer_.expire();
}

void ShmFabric::watch(std::uint64_t now_ns) {
  watch_now_ = false;
  last_watch_ns_ = now_ns;
  beat(now_ns);
  read_control();
  late_.look(now_ns);
  if (silence_timeout_ns_ == 0 || now_ns < next_silence_check_ns_) return;
  next_silence_check_ns_ = now_ns + silence_timeout_ns_ / kSilenceChecksPerTimeout;
  detector_.look(now_ns);
  check_silence();
}

void ShmFabric::beat(std::uint64_t now_ns) noexcept {
  memory::store(own_->heartbeats, ++heartbeats_);
  memory::store(own_->last_watch_ns, now_ns);
}

void ShmFabric::check_silence() {
  for (Rank peer = 0; peer < size(); ++peer) {
    if (peer == rank_ || failed(peer)) continue;
    if (detector_.silent(peer, memory::load(doors_[peer].base->heartbeats)))
      fail(peer, "it has shown no sign of life for " +
                     std::to_string(silence_timeout_ns_ / 1'000'000) +
                     " ms: the process is stopped, or does not call poll()");
  }
}

/// First comes what it has still said. Closing the control socket tells the peer as well, should it
/// come back to life.
void ShmFabric::fail(Rank peer, const std::string& how) {
  Contact& contact = contacts_[peer];
  if (peer == rank_ || contact.failing) return;
  contact.failing = true;
  drain_messages(peer);
  part_with(peer);
  ++handled_;
  fail_peer(peer, who(peer) + " failed: " + how);
}

void ShmFabric::part_with_expelled(Rank peer) noexcept {
  attend_soon();
  if (!std::exchange(contacts_[peer].failing, true)) part_with(peer);
}

void ShmFabric::part_with(Rank peer) noexcept {
  Contact& contact = contacts_[peer];
  doors_[peer] = Door{};
  contact.messages_until = std::min(contact.messages_until, memory::load(own_->ring(peer).head));
  for (std::uint32_t index = 0; index < kMaxRegions; ++index) remote(peer, {index}) = {};
  outgoing_ -= contact.outgoing.size();
  contact.outgoing.clear();
  for (Offer& offer : contact.offers) late_.add(std::move(offer.segment.mapping), recent_ns_);
  contact.offers.clear();
  if (contact.link.socket) {
    forget(contact.link.socket);
    shutdown(contact.link.socket.get(), SHUT_RDWR);
  }
  contact.link = Link{.pid = contact.link.pid};
  --living_;
  memory::fetch_or(&own_->failed_peers[peer / 64], std::uint64_t{1} << peer % 64);
}

void ShmFabric::fail_soon(Rank peer, std::string how) {
  doomed_.emplace_back(peer, std::move(how));
  attend_soon();
}

void ShmFabric::tell(const Event& event) {
  ++handled_;
  emit(event);
}

std::string ShmFabric::who(Rank peer) const {
  const pid_t pid = contacts_[peer].link.pid;
  return self_.who(peer) + (pid != 0 ? " (pid " + std::to_string(pid) + ")" : "");
}

}  // namespace dunlin::shm

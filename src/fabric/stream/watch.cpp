#include <algorithm>

#include "fabric/stream/stream_backend.hpp"

/// Signs of life, and sleeping on what the transport waits for.
namespace dunlin::stream {
namespace {

/// How often a peer hears from us while it has not identified itself.
constexpr std::uint64_t kGreetingIntervalNs = 50'000'000;
/// The longest sleep while a peer may still write without waking us.
constexpr std::uint64_t kLongestNapNs = 500'000;

}  // namespace

void StreamBackend::take_end(Rank from, std::string why) { core().on_end(from, why); }

/// Reads the clock, which costs more than all the rest of a poll() that finds nothing in a device's
/// queue.
void StreamBackend::look_at_clock(std::uint64_t ticks) noexcept {
  core().set_time(now_ns());
  look_timer_.restart(ticks, core().recent_ns());
  if (registry_) registry_->publish_poll(core().recent_ns());
}

/// The peer's signs of life. Until the group must have formed, a peer that has said nothing yet may
/// be connecting to others.
std::uint64_t StreamBackend::signs_of_life(Rank peer) const noexcept {
  const Contact& contact = contacts_[peer];
  const bool may_be_forming = !contact.greeted && core().recent_ns() < formed_by_ns_;
  return may_be_forming ? core().recent_ns() : contact.frames;
}

/// How often a peer must hear from us. The transport may have overlooked what was said first, until
/// more comes. So a peer that has not answered hears us again, also if no member counts silence.
std::uint64_t StreamBackend::longest_beat_interval_ns() const noexcept {
  for (Rank peer = 0; peer < members_; ++peer)
    if (contacts_[peer].greets && !contacts_[peer].greeted && !core().failing(peer))
      return kGreetingIntervalNs;
  return UINT64_MAX;
}

/// Sends a heartbeat to each peer that has heard nothing else from us since the last one.
void StreamBackend::beat() noexcept {
  for (Rank peer = 0; peer < members_; ++peer) {
    Contact& contact = contacts_[peer];
    Outbox& outbox = contact.outbox;
    const bool spoke =
        std::exchange(contact.sent_at_beat, outbox.frames_sent()) != outbox.frames_sent();
    if (spoke || !contact.greets || core().failing(peer) || !outbox.empty()) continue;
    if (outbox.offer(sizeof(EntryHead)) == 0) continue;
    send_entry(peer, {.kind = EntryKind::beat});
    outbox.flush();
    contact.sent_at_beat = outbox.frames_sent();
  }
}

/// Closes the stream; the core has heard what the peer still said.
void StreamBackend::close(Rank peer) noexcept {
  Contact& contact = contacts_[peer];
  transport_->close(peer);
  if (device_ != nullptr) forget_device_of(peer);
  contact.outbox.clear();
  fail_all(contact, peer);
  contact.give_back();
  remotes_[peer].reset();
  if (std::exchange(contact.came_here, false)) --host_members_;
  if (registry_) registry_->publish_failed(peer);
}

// --- time and waiting ----------------------------------------------------------------------------

std::uint64_t StreamBackend::now_ns() const noexcept { return read_clock_ns(CLOCK_MONOTONIC); }

void StreamBackend::arm() noexcept {
  look_timer_.expire();  // for the last poll() before the sleep, from which duties are reckoned
  if (registry_) registry_->publish_asleep(true);
  if (device_ != nullptr) doze();
}

void StreamBackend::disarm(bool) noexcept {
  look_timer_.expire();
  last_doze_ns_ = now_ns();
  if (registry_) registry_->publish_asleep(false);
}

bool StreamBackend::may_wait() noexcept {
  if (!unsent_.empty()) send_all();
  return !sent_to_self_ && transport_->may_wait();
}

std::uint64_t StreamBackend::next_duty_ns() const noexcept {
  return unnoted_ == 0 ? UINT64_MAX : core().recent_ns() + kLongestNapNs;  // STR-B4
}

}  // namespace dunlin::stream

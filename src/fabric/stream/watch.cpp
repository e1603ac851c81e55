#include <algorithm>

#include "fabric/stream/stream_fabric.hpp"

namespace dunlin::stream {
namespace {

constexpr std::uint64_t kSilenceChecksPerTimeout = 8;
/// While a peer has not said who it is.
constexpr std::uint64_t kGreetingIntervalNs = 50'000'000;

}  // namespace

void StreamFabric::take_end(Rank from, std::string why) {
  fail(from, contacts_[from].says_goodbye ? "it has left the group" : why);
}

/// Reading it costs more than all the rest of a poll() that finds nothing in a device's queue.
void StreamFabric::look_at_clock(std::uint64_t ticks) noexcept {
  recent_ns_ = now_ns();
  look_timer_.restart(ticks, recent_ns_);
  presence_.show_poll(recent_ns_);
  if (recent_ns_ >= wake_at_ns_) wake_at_ns_ = UINT64_MAX;
}

/// After what peers have sent was heard: nobody is silent whose frames wait here.
void StreamFabric::watch() {
  if (recent_ns_ >= next_beat_ns_) beat();
  if (recent_ns_ >= next_silence_check_ns_) check_silence();
}

/// The transport may have overlooked what was said first, until more comes. So whoever has not
/// answered hears us again, also if nobody counts silence.
std::uint64_t StreamFabric::beat_interval_ns() const noexcept {
  std::uint64_t interval_ns = beat_interval_ns_;
  for (Rank peer = 0; peer < size(); ++peer)
    if (peer != rank_ && !contacts_[peer].greeted && !contacts_[peer].failing)
      interval_ns = std::min(interval_ns, kGreetingIntervalNs);
  return interval_ns;
}

/// To each peer that has heard nothing else from us since the last time.
void StreamFabric::beat() noexcept {
  const std::uint64_t interval_ns = beat_interval_ns();
  next_beat_ns_ = interval_ns == UINT64_MAX ? UINT64_MAX : recent_ns_ + interval_ns;
  if (interval_ns == UINT64_MAX) return;
  for (Rank peer = 0; peer < size(); ++peer) {
    Contact& contact = contacts_[peer];
    Outbox& outbox = contact.outbox;
    const bool spoke =
        std::exchange(contact.sent_at_beat, outbox.frames_sent()) != outbox.frames_sent();
    if (spoke || peer == rank_ || contact.failing || !outbox.empty()) continue;
    if (outbox.offer(sizeof(EntryHead)) == 0) continue;
    say(peer, {.kind = EntryKind::beat});
    outbox.flush();
    contact.sent_at_beat = outbox.frames_sent();
  }
}

void StreamFabric::check_silence() {
  if (silence_timeout_ns_ == 0) {
    next_silence_check_ns_ = UINT64_MAX;
    return;
  }
  next_silence_check_ns_ = recent_ns_ + silence_timeout_ns_ / kSilenceChecksPerTimeout;
  detector_.look(recent_ns_);
  for (Rank peer = 0; peer < size(); ++peer) {
    if (peer == rank_ || failed(peer)) continue;
    if (!contacts_[peer].greeted && recent_ns_ < formed_by_ns_) continue;
    if (detector_.silent(peer, contacts_[peer].frames))
      fail(peer, "it has shown no sign of life for " +
                     std::to_string(silence_timeout_ns_ / 1'000'000) +
                     " ms: the process is stopped or does not call poll(), or the network is cut");
  }
}

/// First comes what it has still said. Closing the stream tells the peer as well, should it come
/// back to life. We may be that peer: our own atomics go through the device, if only it can do them
/// (B3), and then our own memory is not to be had without it.
void StreamFabric::fail(Rank peer, const std::string& how) {
  Contact& contact = contacts_[peer];
  if (contact.failing) return;
  contact.failing = true;
  drain(peer);
  part_with(peer);
  ++handled_;
  fail_peer(peer, who(peer) + " failed: " + how);
}

void StreamFabric::part_with_expelled(Rank peer) noexcept {
  if (!std::exchange(contacts_[peer].failing, true)) part_with(peer);
}

void StreamFabric::part_with(Rank peer) noexcept {
  Contact& contact = contacts_[peer];
  transport_->close(peer);
  if (reach_ != nullptr) forget_device_of(peer);
  contact.outbox.clear();
  for (std::uint32_t index = 0; index < kMaxRegions; ++index) remote(peer, {index}) = {};
  contact.offers.clear();
  fail_all(contact, peer);
  presence_.show_failed(peer);
}

void StreamFabric::fail_soon(Rank peer, std::string how) {
  doomed_.emplace_back(peer, std::move(how));
}

void StreamFabric::tell(const Event& event) {
  ++handled_;
  emit(event);
}

std::string StreamFabric::who(Rank peer) const {
  const std::string& name = peers_[peer].name;
  return (name.empty() ? "member " : "member '" + name + "' of rank ") + std::to_string(peer);
}

}  // namespace dunlin::stream

#include <algorithm>
#include <string>
#include <utility>

#include "assert.hpp"
#include "fabric/core/core.hpp"
#include "fabric/member_list.hpp"

/// Detects failed peers, and expels them (FAB-F3, FAB-X1 to FAB-X4).
namespace dunlin {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kSilenceChecksPerTimeout = 16;
constexpr std::uint64_t kBeatsPerTimeout = 4;
/// This member sends signs of life no oftener than a peer with this timeout needs.
constexpr std::uint32_t kLeastSilenceMs = 4;

}  // namespace

std::string FabricCore::name_of(Rank peer) const {
  const std::string& name = fabric_.peers_[peer].name;
  const std::string number = "rank " + std::to_string(peer);
  return (name.empty() ? "member of " + number : "member '" + name + "' (" + number + ")") +
         backend_->detail_of(peer);
}

/// Makes a peer fail. First comes what the peer has still said. Its closed connection tells the
/// peer as well, should it come back to life.
void FabricCore::fail(Rank peer, const std::string& how, std::uint64_t silent_ns) {
  PeerState& state = states_[peer];
  if (state.failing) return;
  state.failing = true;
  backend_->drain(peer);
  match_waiting();  // a refusal is still announced, though the peer has gone
  const std::string text = name_of(peer) + " failed: " + how;
  part_with(peer);
  announce_failure(peer, text, silent_ns);
}

void FabricCore::on_end(Rank peer, const std::string& how) {
  fail(peer, states_[peer].says_goodbye ? "it has left the group" : how);
}

void FabricCore::fail_soon(Rank peer, std::string how) {
  failing_soon_.emplace_back(peer, std::move(how));
  must_attend();
}

void FabricCore::expel(Rank peer, std::string why, Parting how) {
  if (peer >= size())
    throw Error("there is no member of rank " + std::to_string(peer) + " to expel from group '" +
                group() + "': it has ranks 0 to " + std::to_string(size() - 1));
  Fabric::Peer& failing = fabric_.peers_[peer];
  PeerState& state = states_[peer];
  if (peer == rank() || failing.failed || fabric_.forked_) return;
  failing.failed = state.expelled = true;
  state.leaves = how == Parting::left;
  failing.failure = std::move(why);
  expelled_.push_back(peer);
  must_drain_ = true;  // messages of the peer that no handler has taken are dropped
  must_attend();
  state.failing = true;
  part_with(peer);
}

/// Parts with a peer once: a handler may expel a peer that is just failing.
void FabricCore::part_with(Rank peer) noexcept {
  if (std::exchange(states_[peer].parted, true)) return;
  backend_->close(peer);
  for (std::uint32_t index = 0; index < kMaxRegions; ++index) disconnect(peer, {index});
  for (Offer& offer : std::exchange(states_[peer].offers, {})) backend_->let_go(peer, *offer.there);
  DUNLIN_ASSERT_ALWAYS(std::ranges::count(fabric_.peers_[peer].connected, true) == 0,
                       "FAB-X1: no region of a failed peer is reached any more");
}

/// Announces a failure once for each peer, however often it fails.
void FabricCore::announce_failure(Rank peer, std::string how, std::uint64_t silent_ns) {
  DUNLIN_ASSERT_ALWAYS(states_[peer].parted,
                       "FAB-X4: the connection is closed before the failure is announced");
  Fabric::Peer& failing = fabric_.peers_[peer];
  if (!failing.failed) failing.failure = std::move(how);
  failing.failed = true;
  if (std::exchange(states_[peer].announced, true)) return;
  emit({.kind = Event::Kind::peer_failed,
        .peer = peer,
        .region = {},
        .text = failing.failure,
        .after_ns = silent_ns});
}

void FabricCore::on_killed(Rank peer, pid_t process, std::uint64_t after_ns) noexcept {
  PeerState& state = states_[peer];
  if (state.killed != 0) return;
  state.killed = process;
  state.killed_after_ns = after_ns;
  must_announce_kills_ = true;
  must_attend();
}

void FabricCore::announce_kills() {
  for (Rank peer = 0; peer < size(); ++peer) {
    PeerState& state = states_[peer];
    if (state.killed == 0 || std::exchange(state.kill_told, true)) continue;
    const std::string text = name_of(peer) + " was killed: its process " +
                             std::to_string(state.killed) +
                             " is none of the members any more, and did not give up the memory of "
                             "this member";
    emit({.kind = Event::Kind::peer_killed,
          .peer = peer,
          .region = {},
          .text = text,
          .after_ns = state.killed_after_ns});
  }
}

// --- signs of life -------------------------------------------------------------------------------

void FabricCore::on_silence_timeout(std::uint32_t timeout_ms) noexcept {
  if (timeout_ms == 0) return;
  const std::uint64_t timeout_ns = std::max(timeout_ms, kLeastSilenceMs) * kNsPerMs;
  beat_interval_ns_ = std::min(beat_interval_ns_, timeout_ns / kBeatsPerTimeout);
  next_beat_ns_ = std::min(next_beat_ns_, recent_ns() + beat_interval_ns_);
  reckon_duties();
}

void FabricCore::hasten_beats() noexcept {
  const std::uint64_t interval_ns = backend_->longest_beat_interval_ns();
  if (interval_ns == UINT64_MAX) return;
  next_beat_ns_ = std::min(next_beat_ns_, recent_ns() + interval_ns);
  reckon_duties();
}

void FabricCore::watch() {
  if (recent_ns() >= next_beat_ns_) beat();
  if (recent_ns() >= next_silence_check_ns_) check_silence();
}

void FabricCore::beat() noexcept {
  const std::uint64_t interval_ns =
      std::min(beat_interval_ns_, backend_->longest_beat_interval_ns());
  next_beat_ns_ = interval_ns == UINT64_MAX ? UINT64_MAX : recent_ns() + interval_ns;
  if (interval_ns != UINT64_MAX) backend_->beat();
}

void FabricCore::check_silence() {
  if (silence_timeout_ns_ == 0) {
    next_silence_check_ns_ = UINT64_MAX;
    return;
  }
  last_silence_check_ns_ = recent_ns();
  next_silence_check_ns_ = recent_ns() + silence_timeout_ns_ / kSilenceChecksPerTimeout;
  detector_.look(recent_ns());
  for (Rank peer = 0; peer < size(); ++peer) {
    if (peer == rank() || states_[peer].failing || !linked(peer)) continue;
    if (detector_.silent(peer, backend_->signs_of_life(peer)))
      fail(peer,
           "it has shown no sign of life for " + std::to_string(silence_timeout_ns_ / kNsPerMs) +
               " ms: the process is stopped or does not call poll(), or the network is cut",
           silence_timeout_ns_);
  }
}

}  // namespace dunlin

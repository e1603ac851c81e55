#include "fabric/shm/peer_discovery.hpp"

#include <algorithm>

namespace dunlin::shm {
std::optional<Attachment> PeerDiscovery::poll() {
  if (!agreement_ && !claim_rank()) return std::nullopt;
  step();
  if (agreement_->decided()) return finish();
  if (read_clock_ns(CLOCK_MONOTONIC) >= deadline_ns_) throw_incomplete();
  return std::nullopt;
}

void PeerDiscovery::step() {
  connect_to_lower();
  probe_higher();
  read_probes();
  accept_arrivals();
  read_arrivals();
  read_links();
  advance();
}

void PeerDiscovery::advance() {
  const std::optional<std::uint64_t> round = agreement_->take_report();
  if (round && self_.rank != 0) {
    Packet ready;
    ready.type = PacketType::ready;
    ready.value = *round;
    if (send_packet(links_[0].socket.get(), ready) != Sent::whole)
      lose(0, "it died while the group was forming");
  }
  if (agreement_->decided()) send_go_to_all();
}

/// Called before join() returns, so that a member that runs cannot die without having told the
/// others (SHM-G3).
void PeerDiscovery::send_go_to_all() {
  Packet go;
  go.type = PacketType::go;
  go.value = agreement_->decided_round();
  for (const Link& link : links_)
    if (link.socket) static_cast<void>(send_packet(link.socket.get(), go));
}

Awaited PeerDiscovery::awaited() const {
  Awaited news;
  if (!agreement_) {
    news.by(next_claim_ns_);
    return news;
  }
  news.by(deadline_ns_);
  news.add(listener_);
  for (const Link& link : links_)
    if (link.socket) news.add(link.socket);
  for (const Arrival& arrival : arrivals_) news.add(arrival.socket);
  for (const Descriptor& probe : probes_)
    if (probe) news.add(probe);
  for (Rank rank = 0; rank < self_.members(); ++rank)
    if (!links_[rank].socket && rank != self_.rank)
      news.by(rank < self_.rank ? next_try_ns_ : next_probe_ns_);
  return news;
}

Attachment PeerDiscovery::finish() {
  const StartAgreement::Incarnations& members = *agreement_->decided();
  for (Rank rank = 0; rank < self_.members(); ++rank) {
    Link& link = links_[rank];
    if (link.incarnation == members[rank]) continue;
    if (link.socket) {
      static_cast<void>(send_packet(
          link.socket.get(),
          refusal(group_text() + " is already running: " + self_.who(rank) +
                  " was lost at its start, and a group takes no late joiner. Stop its members "
                  "first, or choose another group name")));
    }
    link = Link{};
  }
  return {.self = std::move(self_),
          .access = access_,
          .listener = std::move(listener_),
          .bell = std::move(bell_),
          .base = std::move(base_),
          .links = std::move(links_)};
}

void PeerDiscovery::throw_incomplete() const {
  const std::string within = " within " + std::to_string(timeout_ms_) + " ms";
  const auto here = static_cast<std::size_t>(std::count_if(
      links_.begin(), links_.end(), [](const Link& l) { return l.incarnation != 0; }));
  if (here == links_.size())
    throw Error(group_text() + ": all " + std::to_string(here) + " members came, but " +
                self_.who(0) + " did not give the start" + within +
                ": is one of them stopped, or very slow? Try again with a longer timeout_ms");
  throw Error(group_text() + " is not complete: " + std::to_string(here) + " of " +
              std::to_string(links_.size()) + " members came" + within +
              "; missing: " + missing_members() +
              ". Start the missing ones, or check that they use the same group name, "
              "user and member count");
}

std::string PeerDiscovery::missing_members() const {
  std::string text;
  for (Rank rank = 0; rank < self_.members(); ++rank) {
    if (met(rank)) continue;
    if (!text.empty()) text += ", ";
    text += self_.who(rank);
    if (links_[rank].socket)
      text += " (pid " + std::to_string(links_[rank].pid) + " is there, but does not answer)";
    else if (!notes_[rank].empty())
      text += " (" + notes_[rank] + ")";
  }
  return text;
}

}  // namespace dunlin::shm

#include "fabric/shm/rendezvous.hpp"

#include <algorithm>

#include <poll.h>

namespace dunlin::shm {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;

pollfd readable(const Descriptor& descriptor) { return {descriptor.get(), POLLIN, 0}; }

}  // namespace

Attachment Rendezvous::run() {
  const std::uint64_t deadline_ns =
      read_clock_ns(CLOCK_MONOTONIC) + std::uint64_t{timeout_ms_} * kNsPerMs;
  while (true) {
    step();
    if (formation_->decided()) return finish();
    if (read_clock_ns(CLOCK_MONOTONIC) >= deadline_ns) throw_incomplete();
    wait_for_news(deadline_ns);
  }
}

void Rendezvous::step() {
  connect_to_lower();
  probe_higher();
  read_probes();
  accept_arrivals();
  read_arrivals();
  // Once the group runs, what else its members say is for poll() to read.
  for (Rank rank = 0; rank < self_.members() && !formation_->decided(); ++rank) read_link(rank);
  advance();
}

void Rendezvous::advance() {
  const std::optional<std::uint64_t> round = formation_->take_report();
  if (round && self_.rank != 0) {
    Packet ready;
    ready.type = PacketType::ready;
    ready.value = *round;
    if (send_packet(links_[0].socket.get(), ready) != Sent::whole)
      lose(0, "it died while the group was forming");
  }
  if (formation_->decided()) tell_everyone_to_go();
}

/// Before join() returns, so that a member which runs cannot die without having told (G3).
void Rendezvous::tell_everyone_to_go() {
  Packet go;
  go.type = PacketType::go;
  go.value = formation_->decided_round();
  for (const Link& link : links_)
    if (link.socket) static_cast<void>(send_packet(link.socket.get(), go));
}

void Rendezvous::wait_for_news(std::uint64_t deadline_ns) {
  std::vector<pollfd> watched{readable(listener_)};
  for (const Link& link : links_)
    if (link.socket) watched.push_back(readable(link.socket));
  for (const Arrival& arrival : arrivals_) watched.push_back(readable(arrival.socket));
  for (const Descriptor& probe : probes_)
    if (probe) watched.push_back(readable(probe));

  std::uint64_t until_ns = deadline_ns;
  for (Rank rank = 0; rank < self_.members(); ++rank)
    if (!links_[rank].socket && rank != self_.rank)
      until_ns = std::min(until_ns, rank < self_.rank ? next_try_ns_ : next_probe_ns_);
  const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
  const std::uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
  const auto wait_ms = static_cast<int>((wait_ns + kNsPerMs - 1) / kNsPerMs);
  ::poll(watched.data(), watched.size(), wait_ms);
}

Attachment Rendezvous::finish() {
  const Formation::Incarnations& members = *formation_->decided();
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
  return {std::move(self_), access_,          std::move(listener_),
          std::move(bell_), std::move(base_), std::move(links_)};
}

void Rendezvous::throw_incomplete() const {
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

std::string Rendezvous::missing_members() const {
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

#include <algorithm>
#include <vector>

#include <poll.h>

#include "fabric/shm/peer_discovery.hpp"

namespace dunlin::shm {
namespace {

constexpr std::uint64_t kProbeIntervalNs = 100'000'000;
/// A process that connects and sends no hello makes room for the next one.
constexpr std::size_t kMaxArrivals = 64;

std::string number(std::uint64_t value) { return std::to_string(value); }

}  // namespace

std::string PeerDiscovery::stranger(const Counterpart& holder) {
  return "pid " + std::to_string(holder.pid) + " of user " + std::to_string(holder.user) +
         ", which may not be in this group";
}

std::string PeerDiscovery::who(Rank rank) const {
  return self_.who(rank) + " (pid " + number(static_cast<std::uint64_t>(links_[rank].pid)) + ")";
}

/// Why the sender of the hello cannot be in this group; empty if it can.
std::string PeerDiscovery::mismatch(const Packet& hello, pid_t pid) const {
  const std::string here = who(self_.rank);
  const std::string there =
      "rank " + number(hello.rank) + " (pid " + number(static_cast<std::uint64_t>(pid)) + ")";
  if (self_.group != hello.group.data())
    return group_text() + ": " + there + " came for another group, '" + hello.group.data() + "'";
  if ((hello.names_hash == 0) != (self_.names_hash == 0))
    return group_text() + ": " + here + " joins by " + (self_.names_hash ? "name" : "count") +
           ", and " + there + " by " + (hello.names_hash ? "name" : "count") +
           ". All members must do the same";
  if (hello.members != self_.members())
    return group_text() + ": " + here + " expects " + number(self_.members()) + " members, and " +
           there + " expects " + number(hello.members) + ". All must give the same number";
  if (hello.names_hash != self_.names_hash)
    return group_text() + ": " + here + " and " + there +
           " have different lists of member names. All must give the same names in the same order";
  if (hello.rank >= self_.members() || hello.rank == self_.rank || hello.incarnation == 0)
    return group_text() + ": " + there + " introduced itself with an impossible rank";
  return {};
}

// --- towards lower ranks -------------------------------------------------------------------------

void PeerDiscovery::connect_to_lower() {
  const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
  if (now_ns < next_try_ns_) return;
  for (Rank rank = 0; rank < self_.rank; ++rank)
    if (!links_[rank].socket) connect_to(rank);
  next_try_ns_ = tries_.after(now_ns);
}

void PeerDiscovery::connect_to(Rank rank) {
  std::optional<Descriptor> socket = shm::connect_to(address_of(access_, self_.group, rank));
  if (!socket) return;
  const Counterpart holder = counterpart_of(*socket, access_);
  if (!holder.admitted) {
    notes_[rank] = "its address is held by " + stranger(holder);
    return;
  }
  links_[rank].pid = holder.pid;
  links_[rank].socket = std::move(*socket);
  const Sent sent = send_packet(links_[rank].socket.get(), introduction(self_, PacketType::hello),
                                base_.file.get(), bell_.get());
  if (sent != Sent::whole) links_[rank] = Link{};
}

void PeerDiscovery::lose(Rank rank, const std::string& why) {
  notes_[rank] =
      "pid " + number(static_cast<std::uint64_t>(links_[rank].pid)) + " came, but " + why;
  agreement_->lost(rank);
  links_[rank] = Link{};
}

/// Reads the links. Asks the kernel once which of them have something: a system call for each of
/// many would take most of the time that they need to form. Once the group runs, poll() reads what
/// else its members send.
void PeerDiscovery::read_links() {
  std::vector<pollfd> sockets;
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < self_.members(); ++rank) {
    if (!links_[rank].socket) continue;
    sockets.push_back({links_[rank].socket.get(), POLLIN, 0});
    ranks.push_back(rank);
  }
  if (::poll(sockets.data(), sockets.size(), 0) <= 0) return;
  for (std::size_t i = 0; i < ranks.size() && !agreement_->decided(); ++i)
    if (sockets[i].revents != 0) read_link(ranks[i]);
}

void PeerDiscovery::read_link(Rank rank) {
  while (links_[rank].socket && !agreement_->decided()) {
    Received received = receive_packet(links_[rank].socket.get());
    if (received.kind == Received::Kind::nothing_yet) return;
    if (received.kind == Received::Kind::other_version)
      throw Error(group_text() + ": " + who(rank) + " speaks version " +
                  number(received.packet.version) + " of the control protocol, and this process " +
                  number(kProtocolVersion) + ". All members must use the same release of Dunlin");
    if (received.kind == Received::Kind::no_descriptors)
      throw Error(group_text() + ": " + out_of_descriptors());
    if (received.kind == Received::Kind::garbage) return lose(rank, "sent garbage");
    if (received.kind == Received::Kind::closed)
      return lose(rank, "left or died while the group was forming");
    handle(rank, received);
  }
}

void PeerDiscovery::handle(Rank rank, Received& received) {
  const Packet& packet = received.packet;
  if (packet.type == PacketType::refuse) throw Error(packet.text.data());
  if (packet.type == PacketType::hello && !met(rank)) return greet(rank, received);
  if (packet.type == PacketType::ready && met(rank))
    return agreement_->on_ready(rank, packet.value);
  if (packet.type == PacketType::go && met(rank)) return agreement_->on_go(packet.value);
  lose(rank, "did not keep to the protocol");
}

/// Takes a peer's introduction: from here on it is a member.
void PeerDiscovery::greet(Rank rank, Received& hello) {
  Link& link = links_[rank];
  const std::string fault = mismatch(hello.packet, link.pid);
  if (!fault.empty()) throw Error(fault);
  const std::string wrong = take_introduction(link, hello, self_, rank, self_.members());
  if (!wrong.empty()) return lose(rank, wrong);
  agreement_->met(rank, link.incarnation);
}

// --- from higher ranks ---------------------------------------------------------------------------

void PeerDiscovery::accept_arrivals() {
  for (std::size_t i = 0; i < kMaxArrivals; ++i) {
    Descriptor socket = take_connection(listener_);
    if (!socket && (errno == EMFILE || errno == ENFILE))
      throw Error(group_text() + ": " + out_of_descriptors());
    if (!socket) return;
    const Counterpart counterpart = counterpart_of(socket, access_);
    if (!counterpart.admitted) continue;
    if (arrivals_.size() == kMaxArrivals) arrivals_.erase(arrivals_.begin());
    arrivals_.push_back({std::move(socket), counterpart});
  }
}

void PeerDiscovery::read_arrivals() {
  std::vector<Arrival> silent;
  for (Arrival& arrival : arrivals_)
    if (still_silent(arrival)) silent.push_back(std::move(arrival));
  arrivals_ = std::move(silent);
}

bool PeerDiscovery::still_silent(Arrival& arrival) {
  Received received = receive_packet(arrival.socket.get());
  if (received.kind == Received::Kind::nothing_yet) return true;
  if (received.kind == Received::Kind::no_descriptors)
    throw Error(group_text() + ": " + out_of_descriptors());
  if (received.kind == Received::Kind::other_version) {
    const std::string text = group_text() + ": " + who(self_.rank) + " speaks version " +
                             number(kProtocolVersion) + " of the control protocol, and you " +
                             number(received.packet.version);
    static_cast<void>(send_packet(arrival.socket.get(), refusal(text)));
  } else if (received.kind == Received::Kind::packet && received.packet.type == PacketType::hello) {
    admit(arrival, received);
  }
  return false;  // a probe only asks whether we run
}

void PeerDiscovery::admit(Arrival& arrival, Received& hello) {
  std::string fault = mismatch(hello.packet, arrival.who.pid);
  const Rank rank = hello.packet.rank;
  if (fault.empty() && rank < self_.rank)
    fault = group_text() + ": " + self_.who(rank) + " must wait for higher ranks, not call them";
  if (fault.empty() && links_[rank].socket) read_link(rank);  // it may be gone by now
  if (fault.empty() && links_[rank].socket)
    fault = group_text() + ": " + who(rank) + " is here already";
  if (!fault.empty()) {
    if (rank < self_.members() && rank != self_.rank && !links_[rank].socket)
      notes_[rank] = "pid " + std::to_string(arrival.who.pid) + " was refused: " + fault;
    static_cast<void>(send_packet(arrival.socket.get(), refusal(fault)));
    return;
  }
  links_[rank].pid = arrival.who.pid;
  links_[rank].socket = std::move(arrival.socket);
  const Sent sent = send_packet(links_[rank].socket.get(), introduction(self_, PacketType::hello),
                                base_.file.get(), bell_.get());
  if (sent != Sent::whole) return lose(rank, "died at once");
  greet(rank, hello);
}

// --- is it running already? ----------------------------------------------------------------------

/// Asks the higher ranks whether the group runs already. Members call only lower ranks: if we took
/// the place of a member that died in a running group, the higher ranks would never call.
void PeerDiscovery::probe_higher() {
  const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
  if (next_probe_ns_ == 0) next_probe_ns_ = now_ns + kProbeIntervalNs;
  if (now_ns < next_probe_ns_) return;
  next_probe_ns_ = now_ns + kProbeIntervalNs;
  for (Rank rank = self_.rank + 1; rank < self_.members(); ++rank) {
    if (links_[rank].socket || probes_[rank]) continue;
    std::optional<Descriptor> socket = shm::connect_to(address_of(access_, self_.group, rank));
    if (!socket || !counterpart_of(*socket, access_).admitted) continue;
    if (send_packet(socket->get(), introduction(self_, PacketType::probe)) == Sent::whole)
      probes_[rank] = std::move(*socket);
  }
}

void PeerDiscovery::read_probes() {
  for (Descriptor& probe : probes_) {
    if (!probe) continue;
    const Received received = receive_packet(probe.get());
    if (received.kind == Received::Kind::nothing_yet) continue;
    if (received.kind == Received::Kind::packet && received.packet.type == PacketType::refuse)
      throw Error(received.packet.text.data());
    probe.close();
  }
}

}  // namespace dunlin::shm

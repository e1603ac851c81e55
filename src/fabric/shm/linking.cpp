#include "fabric/shm/linking.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/eventfd.h>
#include <unistd.h>

namespace dunlin::shm {
namespace {

constexpr std::size_t kMaxCallers = 64;

}  // namespace

/// The link to the own rank has no socket, and a ring for what this member sends to itself.
Linking::Linking(Identity self, Access access, std::uint64_t key)
    : self_(std::move(self)),
      access_(access),
      key_(key),
      bell_(checked(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "making a doorbell")),
      base_(make_base(self_, access_, 0)),
      links_(self_.members()) {
  Link& own = links_[self_.rank];
  own.base = base_.mapping;
  own.inbox = own.outbox = make_ring(self_, access_).mapping;
  own.pid = getpid();
  own.incarnation = self_.incarnation;
  own.silence_timeout_ms = self_.silence_timeout_ms;
  own.needs_fence = !self_.has_barriers;
}

void Linking::call(Rank peer, Address at) {
  awaiting_.push_back({.rank = peer, .calls = false, .at = std::move(at)});
}

void Linking::expect(Rank peer) { awaiting_.push_back({.rank = peer, .calls = true}); }

bool Linking::step() {
  call_all();
  listen();
  std::erase_if(awaiting_, [this](Awaiting& peer) { return take_answer_of(peer); });
  return awaiting_.empty();
}

void Linking::call_all() {
  const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
  if (now_ns < next_try_ns_) return;
  for (Awaiting& peer : awaiting_)
    if (!peer.calls && !links_[peer.rank].socket) call(peer);
  next_try_ns_ = tries_.after(now_ns);
}

void Linking::call(Awaiting& peer) {
  std::optional<Descriptor> socket = connect_to(peer.at);
  if (!socket) return;
  const Counterpart holder = counterpart_of(*socket, access_);
  if (!holder.admitted) return;
  Link& link = links_[peer.rank];
  link.pid = holder.pid;
  link.socket = std::move(*socket);
  if (introduce(link, peer) != Sent::whole) link = Link{};
}

Sent Linking::introduce(Link& link, Awaiting& peer) {
  const OwnMapping inbox = make_ring(self_, access_);
  peer.inbox = inbox.mapping;
  Packet packet = introduction(self_, PacketType::enter);
  packet.value = key_;
  return send_packet(link.socket.get(), packet, base_.file.get(), bell_.get(), inbox.file.get());
}

/// Reads a peer's answer; true once the peer is linked. A member that has not admitted this
/// newcomer yet hangs up, and is called again.
bool Linking::take_answer_of(Awaiting& peer) {
  Link& link = links_[peer.rank];
  if (!link.socket) return false;
  if (!link.base) {
    Received received = receive_packet(link.socket.get());
    if (received.kind == Received::Kind::nothing_yet) return false;
    if (received.kind == Received::Kind::packet && received.packet.type == PacketType::refuse)
      give_up(received.packet.text.data());
    const bool fits = received.kind == Received::Kind::packet &&
                      received.packet.type == PacketType::enter && received.packet.value == key_;
    if (!fits || !take_introduction(link, received, self_, peer.rank, std::nullopt).empty()) {
      link = Link{};
      return false;
    }
  }
  link.inbox = std::move(peer.inbox);
  return true;
}

void Linking::listen() {
  for (std::size_t i = 0; i < kMaxCallers; ++i) {
    Descriptor socket = take_connection(listener_);
    if (!socket && (errno == EMFILE || errno == ENFILE)) give_up(out_of_descriptors());
    if (!socket) break;
    const Counterpart who = counterpart_of(socket, access_);
    if (!who.admitted) continue;
    if (callers_.size() == kMaxCallers) callers_.erase(callers_.begin());
    callers_.emplace_back(std::move(socket), who.pid);
  }
  std::erase_if(callers_, [this](auto& caller) { return take_call(caller.first, caller.second); });
}

/// Reads a caller's introduction; false if it has said nothing yet.
bool Linking::take_call(Descriptor& socket, pid_t pid) {
  Received received = receive_packet(socket.get());
  if (received.kind == Received::Kind::nothing_yet) return false;
  const auto peer = std::ranges::find_if(awaiting_, [&](const Awaiting& one) {
    return one.calls && one.rank == received.packet.rank && !links_[one.rank].socket;
  });
  const bool fits = received.kind == Received::Kind::packet && peer != awaiting_.end() &&
                    received.packet.type == PacketType::enter && received.packet.value == key_;
  if (!fits) return true;
  Link link;
  if (!take_introduction(link, received, self_, peer->rank, std::nullopt).empty()) return true;
  link.socket = std::move(socket);
  link.pid = pid;
  if (introduce(link, *peer) == Sent::whole) links_[peer->rank] = std::move(link);
  return true;
}

Attachment Linking::attachment() {
  return {.self = std::move(self_),
          .access = access_,
          .listener = std::move(listener_),
          .bell = std::move(bell_),
          .base = std::move(base_),
          .links = std::move(links_)};
}

std::vector<Rank> Linking::missing() const {
  std::vector<Rank> all;
  all.reserve(awaiting_.size());
  for (const Awaiting& peer : awaiting_) all.push_back(peer.rank);
  return all;
}

void Linking::add_to(Awaited& news) const {
  if (!awaiting_.empty()) news.by(next_try_ns_);
  if (listener_) news.add(listener_);
  for (const Awaiting& peer : awaiting_)
    if (links_[peer.rank].socket) news.add(links_[peer.rank].socket);
  for (const auto& [socket, pid] : callers_) news.add(socket);
}

void Linking::give_up(const std::string& why) const {
  throw Error("member " + self_.who(self_.rank) + " cannot come into group '" + self_.group +
              "': " + why);
}

}  // namespace dunlin::shm

#include "fabric/tcp/connector.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace dunlin::tcp {
namespace {

/// Small frames leave at once. The kernel keeps the sizes of its buffers itself.
void tune(int socket) noexcept {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

short events_of(SecureSession::Handshake state) noexcept {
  return state == SecureSession::Handshake::writes ? POLLOUT : POLLIN;
}

}  // namespace

Connector::Connector(Listener listener, bool encrypts)
    : listener_(std::move(listener)), encrypts_(encrypts) {}

std::vector<std::byte> Connector::endpoint_address() const {
  return encode({.at = listener_.at, .encrypts = encrypts_});
}

void Connector::begin(Rank rank, std::span<const std::vector<std::byte>> endpoint_addresses,
                      std::span<const stream::Proof> ours, std::span<const stream::Proof> theirs,
                      std::uint64_t deadline_ns) {
  rank_ = rank;
  deadline_ns_ = deadline_ns;
  missing_ = endpoint_addresses.size() - 1;
  for (Rank peer = 0; peer < endpoint_addresses.size(); ++peer) {
    const Endpoint endpoint = decode(endpoint_addresses[peer], "member " + std::to_string(peer));
    peers_.push_back({.endpoint = endpoint,
                      .at = endpoint.at.text(),
                      .ours = ours[peer],
                      .theirs = theirs[peer],
                      .calling = Wire()});
  }
  check_agreement();
  if (encrypts_) security_ = std::make_unique<Security>(rank, ours, theirs);
  for (Rank peer = rank_ + 1; peer < peers_.size(); ++peer) call(peer);
}

void Connector::check_agreement() const {
  for (Rank peer = 0; peer < peers_.size(); ++peer) {
    if (peers_[peer].endpoint.encrypts == encrypts_) continue;
    throw Error(who(peer) +
                (encrypts_ ? " does not encrypt its connections, and this member does"
                           : " encrypts its connections, and this member does not") +
                ": give `encrypt` to all members or to none");
  }
}

void Connector::call(Rank peer) {
  Peer& called = peers_[peer];
  const rendezvous::SocketAddress& at = called.endpoint.at;
  Descriptor socket(
      checked(::socket(at.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
              "making a socket"));
  tune(socket.get());
  if (connect(socket.get(), at.generic(), at.bytes) != 0 && errno != EINPROGRESS)
    throw Error("connecting to " + who(peer) + " failed: " + error_text(errno));
  called.calling = Wire(std::move(socket));
}

/// Whether the connection stands, and is encrypted if it must be.
bool Connector::is_through(Peer& called, Rank peer) const {
  pollfd ready{called.calling.descriptor(), called.awaits, 0};
  if (poll(&ready, 1, 0) <= 0) return false;
  if (!called.shakes_hands) {
    int error = 0;
    socklen_t bytes = sizeof error;
    if (getsockopt(ready.fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
    if (error != 0) throw Error("connecting to " + who(peer) + " failed: " + error_text(error));
    if (security_) called.calling.encrypt(*security_, peer);
    called.shakes_hands = true;
  }
  const SecureSession::Handshake state = called.calling.shake_hands();
  if (state == SecureSession::Handshake::failed)
    throw Error("connecting to " + who(peer) + " failed: the TLS handshake was broken off");
  called.awaits = events_of(state);
  return state == SecureSession::Handshake::complete;
}

/// Whether the ticket is on its way.
bool Connector::finish_call(Rank peer) {
  Peer& called = peers_[peer];
  if (!is_through(called, peer)) return false;
  Ticket ticket;
  ticket.from = rank_;
  ticket.to = peer;
  ticket.proof = called.ours;
  const iovec piece{&ticket, sizeof ticket};
  // An empty buffer has room for so little.
  if (called.calling.send(std::span(&piece, 1)) != sizeof ticket)
    throw Error("connecting to " + who(peer) + " failed: " + error_text(errno));
  return true;
}

void Connector::accept_strangers(std::uint64_t now_ns) {
  for (;;) {
    Descriptor socket(
        accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    tune(socket.get());
    if (strangers_.size() >= kMaxStrangers + missing_) strangers_.erase(strangers_.begin());
    Stranger& stranger = strangers_.emplace_back();
    stranger.wire = Wire(std::move(socket));
    stranger.until_ns = now_ns + kTicketPatienceNs;
    if (security_) stranger.wire.encrypt(*security_, SecureSession::kCalled);
  }
}

std::optional<Rank> Connector::read_ticket(Stranger& stranger, bool& gone) {
  const SecureSession::Handshake state = stranger.wire.shake_hands();
  stranger.awaits = events_of(state);
  gone = state == SecureSession::Handshake::failed;
  if (state != SecureSession::Handshake::complete) return std::nullopt;
  auto* const to = reinterpret_cast<std::byte*>(&stranger.ticket);
  const iovec piece{to + stranger.have, sizeof(Ticket) - stranger.have};
  const ssize_t got = stranger.wire.receive(std::span(&piece, 1));
  gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  if (got <= 0) return std::nullopt;
  stranger.have += static_cast<std::size_t>(got);
  if (stranger.have < sizeof(Ticket)) return std::nullopt;
  gone = true;
  const Ticket& ticket = stranger.ticket;
  const bool fits = ticket.magic == Ticket().magic && ticket.to == rank_ && ticket.from < rank_ &&
                    !peers_[ticket.from].connected &&
                    stream::same_proof(ticket.proof, peers_[ticket.from].theirs);
  return fits ? std::optional<Rank>(ticket.from) : std::nullopt;
}

MadeConnection Connector::made(Rank peer, Wire wire) {
  peers_[peer].connected = true;
  --missing_;
  return {.peer = peer, .wire = std::move(wire), .at = peers_[peer].at};
}

std::optional<MadeConnection> Connector::next() {
  if (complete()) return std::nullopt;
  const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
  for (Rank peer = rank_ + 1; peer < peers_.size(); ++peer)
    if (!peers_[peer].connected && finish_call(peer))
      return made(peer, std::exchange(peers_[peer].calling, Wire()));
  accept_strangers(now_ns);
  for (std::size_t i = 0; i < strangers_.size();) {
    bool gone = false;
    const std::optional<Rank> peer = read_ticket(strangers_[i], gone);
    if (!gone && now_ns < strangers_[i].until_ns) {
      ++i;
      continue;
    }
    Wire wire = std::move(strangers_[i].wire);
    strangers_.erase(strangers_.begin() + static_cast<std::ptrdiff_t>(i));
    if (peer) return made(*peer, std::move(wire));
  }
  if (now_ns < deadline_ns_) return std::nullopt;
  throw Error("the members have met, but there is no connection to " + missing() +
              ": is a firewall in between, or did one of us give an address that others cannot "
              "reach (JoinOptions::address)?");
}

std::string Connector::who(Rank peer) const {
  const std::string& at = peers_[peer].at;
  return "member " + std::to_string(peer) + (at.empty() ? "" : " at " + at);
}

std::string Connector::missing() const {
  std::string all;
  for (Rank peer = 0; peer < peers_.size(); ++peer)
    if (peer != rank_ && !peers_[peer].connected) all += (all.empty() ? "" : ", ") + who(peer);
  return all;
}

Awaited Connector::awaited() const {
  Awaited news;
  news.by(deadline_ns_);
  for (const Peer& peer : peers_)
    if (peer.calling.open())
      news.descriptors.push_back({peer.calling.descriptor(), peer.awaits, 0});
  for (const Stranger& stranger : strangers_) {
    news.descriptors.push_back({stranger.wire.descriptor(), stranger.awaits, 0});
    news.by(stranger.until_ns);
  }
  news.add(listener_.socket);
  return news;
}

}  // namespace dunlin::tcp

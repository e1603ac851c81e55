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

/// Sets the socket's options: small frames leave at once, and a receive that finds nothing looks
/// into the network device's queue, where kernel and driver offer that and the process may ask for
/// it. The kernel keeps the sizes of its buffers itself.
void tune(const Descriptor& socket) noexcept {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_BUSY_POLL, 50);  // any number but 0 counts: no receive blocks
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
  meet(endpoint_addresses, ours, theirs, {});
}

void Connector::enter(Rank rank, std::span<const std::vector<std::byte>> endpoint_addresses,
                      std::span<const stream::Proof> ours, std::span<const stream::Proof> theirs,
                      std::span<const Rank> absent) {
  rank_ = rank;
  enters_ = true;
  meet(endpoint_addresses, ours, theirs, absent);
}

void Connector::meet(std::span<const std::vector<std::byte>> endpoint_addresses,
                     std::span<const stream::Proof> ours, std::span<const stream::Proof> theirs,
                     std::span<const Rank> absent) {
  missing_ = 0;
  peers_.resize(endpoint_addresses.size());
  for (Rank peer = 0; peer < peers_.size(); ++peer) {
    if (peer == rank_ || std::ranges::find(absent, peer) != absent.end()) continue;
    Peer& met = peers_[peer];
    met.caller = (peer > rank_) != enters_ ? Caller::we : Caller::they;
    met.endpoint = decode(endpoint_addresses[peer], "member " + std::to_string(peer));
    met.at = met.endpoint.at.text();
    met.ours = ours[peer];
    met.theirs = theirs[peer];
    ++missing_;
  }
  check_agreement();
  if (encrypts_) {
    security_ = std::make_unique<Security>(rank_);
    for (Rank peer = 0; peer < peers_.size(); ++peer)
      if (peers_[peer].caller != Caller::nobody)
        security_->add(peer, peers_[peer].ours, peers_[peer].theirs);
  }
  for (Rank peer = 0; peer < peers_.size(); ++peer)
    if (peers_[peer].caller == Caller::we) peers_[peer].call_again_ns = 0;
  call_again(0);
}

/// Expects newcomers. A newcomer calls us, so its address is of no use but for messages; if the
/// address makes no sense, the newcomer will not come.
void Connector::admit(Rank first, std::span<const stream::Newcomer> newcomers) {
  listen();
  peers_.resize(first + newcomers.size());
  for (std::size_t i = 0; i < newcomers.size(); ++i) {
    const Rank rank = first + static_cast<Rank>(i);
    Peer& admitted = peers_[rank];
    admitted.caller = Caller::they;
    admitted.ours = newcomers[i].ours;
    admitted.theirs = newcomers[i].theirs;
    if (security_) security_->add(rank, admitted.ours, admitted.theirs);
    ++missing_;
    try {
      admitted.endpoint = decode(newcomers[i].endpoint, "a newcomer");
      admitted.at = admitted.endpoint.at.text();
    } catch (const Error&) {
      admitted.at.clear();
    }
  }
}

void Connector::give_up(Rank peer) noexcept {
  if (peer >= peers_.size() || peers_[peer].caller == Caller::nobody) return;
  peers_[peer].caller = Caller::nobody;
  peers_[peer].calling = Wire();
  peers_[peer].call_again_ns = UINT64_MAX;
  --missing_;
}

void Connector::stop_listening() noexcept {
  listener_.socket.close();
  strangers_.clear();
}

void Connector::listen() {
  if (!listens()) listen_again(listener_);
}

bool Connector::is_on_this_host(std::span<const std::byte> endpoint_address) const {
  try {
    return same_host(decode(endpoint_address, "a newcomer").at, listener_.at);
  } catch (const Error&) {
    return false;
  }
}

void Connector::check_agreement() const {
  for (Rank peer = 0; peer < peers_.size(); ++peer) {
    if (peers_[peer].caller == Caller::nobody || peers_[peer].endpoint.encrypts == encrypts_)
      continue;
    throw Error(who(peer) +
                (encrypts_ ? " does not encrypt its connections, and this member does"
                           : " encrypts its connections, and this member does not") +
                ": give `encrypt` to all members or to none");
  }
}

void Connector::call(Rank peer) {
  Peer& called = peers_[peer];
  called.call_again_ns = UINT64_MAX;
  const SocketAddress& at = called.endpoint.at;
  Descriptor socket = new_stream_socket(at);
  checked(socket.get(), "making a socket");
  tune(socket);
  if (connect(socket.get(), at.generic(), at.bytes) != 0 && errno != EINPROGRESS)
    throw Error("connecting to " + who(peer) + " failed: " + error_text(errno));
  called.calling = Wire(std::move(socket));
  called.shakes_hands = called.ticket_sent = false;
  called.answer_bytes = 0;
  called.awaits = POLLOUT;
}

/// Calls those peers again whose time has come.
void Connector::call_again(std::uint64_t now_ns) {
  for (Rank peer = 0; peer < peers_.size(); ++peer)
    if (peers_[peer].call_again_ns <= now_ns) call(peer);
}

/// Whether the connection is made, and is encrypted if it must be.
bool Connector::is_through(Peer& called, Rank peer) const {
  pollfd ready{called.calling.descriptor(), called.awaits, 0};
  if (poll(&ready, 1, 0) <= 0) return false;
  if (!called.shakes_hands) {
    if (const std::string fault = connection_fault(ready.fd); !fault.empty())
      throw Error("connecting to " + who(peer) + " failed: " + fault);
    if (security_) called.calling.encrypt(*security_, peer);
    called.shakes_hands = true;
  }
  const SecureSession::Handshake state = called.calling.shake_hands();
  if (state == SecureSession::Handshake::failed)
    throw Error("connecting to " + who(peer) + " failed: the TLS handshake was broken off");
  called.awaits = events_of(state);
  return state == SecureSession::Handshake::complete;
}

void Connector::send_ticket(Peer& called, Rank peer) const {
  Ticket ticket;
  ticket.from = rank_;
  ticket.to = peer;
  ticket.proof = called.ours;
  const iovec piece{&ticket, sizeof ticket};
  // An empty buffer has room for so few bytes.
  if (called.calling.send(std::span(&piece, 1)) != sizeof ticket)
    throw Error("connecting to " + who(peer) + " failed: " + error_text(errno));
  called.ticket_sent = true;
  called.awaits = POLLIN;
}

/// Whether the member has answered this newcomer (TCP-C3).
bool Connector::is_welcome(Peer& called, Rank peer) const {
  const iovec piece{called.answer.data() + called.answer_bytes,
                    called.answer.size() - called.answer_bytes};
  const ssize_t got = called.calling.receive(std::span(&piece, 1));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) throw Error(who(peer) + " has not admitted us yet");
  called.answer_bytes += static_cast<std::size_t>(got);
  if (called.answer_bytes < called.answer.size()) return false;
  if (called.answer != kWelcome) throw Error(who(peer) + " answers what no member would");
  return true;
}

/// Whether the call has become a connection: for a founder, when its ticket is on its way.
bool Connector::goes_through(Rank peer) {
  Peer& called = peers_[peer];
  if (!called.ticket_sent) {
    if (!is_through(called, peer)) return false;
    send_ticket(called, peer);
  }
  return !enters_ || is_welcome(called, peer);
}

/// Finishes a call. A founder's call must not fail; a newcomer's is repeated.
bool Connector::finish_call(Rank peer, std::uint64_t now_ns) {
  Peer& called = peers_[peer];
  if (!called.calling.open()) return false;
  if (!enters_) return goes_through(peer);
  try {
    return goes_through(peer);
  } catch (const Error&) {
    called.calling = Wire();
    called.call_again_ns = called.pauses.after(now_ns);
    return false;
  }
}

void Connector::accept_strangers(std::uint64_t now_ns) {
  if (!listens()) return;
  for (;;) {
    Descriptor socket(
        accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    tune(socket);
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
  const bool fits = ticket.magic == Ticket().magic && ticket.to == rank_ &&
                    ticket.from < peers_.size() && peers_[ticket.from].caller == Caller::they &&
                    stream::same_proof(ticket.proof, peers_[ticket.from].theirs);
  return fits ? std::optional<Rank>(ticket.from) : std::nullopt;
}

MadeConnection Connector::made(Rank peer, Wire wire) {
  Peer& connected = peers_[peer];
  connected.caller = Caller::nobody;
  connected.ours = connected.theirs = {};
  --missing_;
  return {.peer = peer, .wire = std::move(wire), .at = connected.at};
}

/// Sends a welcome; an empty buffer has room for so few bytes.
bool Connector::send_welcome(Wire& wire) noexcept {
  const iovec piece{const_cast<char*>(kWelcome.data()), kWelcome.size()};
  return wire.send(std::span(&piece, 1)) == static_cast<ssize_t>(kWelcome.size());
}

std::optional<MadeConnection> Connector::next_call(std::uint64_t now_ns) {
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
    if (peer && (*peer < rank_ || send_welcome(wire))) return made(*peer, std::move(wire));
  }
  return std::nullopt;
}

std::optional<MadeConnection> Connector::next() {
  if (complete() && !listens()) return std::nullopt;
  const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
  if (enters_ && !complete()) call_again(now_ns);
  for (Rank peer = 0; peer < peers_.size() && !complete(); ++peer)
    if (peers_[peer].caller == Caller::we && finish_call(peer, now_ns))
      return made(peer, std::exchange(peers_[peer].calling, Wire()));
  if (std::optional<MadeConnection> called = next_call(now_ns)) return called;
  if (complete() || now_ns < deadline_ns_) return std::nullopt;
  throw Error("the members have met, but there is no connection to " + missing() +
              ": is a firewall in between, or did one of us give an address that others cannot "
              "reach (JoinOptions::address)?");
}

std::vector<Rank> Connector::unconnected() const {
  std::vector<Rank> all;
  for (Rank peer = 0; peer < peers_.size(); ++peer)
    if (peers_[peer].caller != Caller::nobody) all.push_back(peer);
  return all;
}

std::string Connector::who(Rank peer) const {
  const std::string& at = peers_[peer].at;
  return "member " + std::to_string(peer) + (at.empty() ? "" : " at " + at);
}

std::string Connector::missing() const {
  std::string all;
  for (const Rank peer : unconnected()) all += (all.empty() ? "" : ", ") + who(peer);
  return all;
}

Awaited Connector::awaited() const {
  Awaited news;
  news.by(deadline_ns_);
  for (const Peer& peer : peers_) {
    news.by(peer.call_again_ns);
    if (peer.calling.open())
      news.descriptors.push_back({peer.calling.descriptor(), peer.awaits, 0});
  }
  for (const Stranger& stranger : strangers_) {
    news.descriptors.push_back({stranger.wire.descriptor(), stranger.awaits, 0});
    news.by(stranger.until_ns);
  }
  if (listens()) news.add(listener_.socket);
  return news;
}

}  // namespace dunlin::tcp

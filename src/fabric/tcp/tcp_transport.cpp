#include "fabric/tcp/tcp_transport.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "fabric/system.hpp"

namespace dunlin::tcp {
namespace {

/// Receiving from so many sockets costs less than asking epoll which of them have something.
constexpr std::size_t kMostAskedDirectly = 2;
constexpr std::size_t kMaxEvents = 64;
/// The most receives from one connection in one round.
constexpr int kMostReceives = 8;
/// The time between two looks for calls of newcomers, which cost a system call each.
constexpr std::uint64_t kBetweenLooksNs = 1'000'000;

constexpr const char* kClosed =
    "its connection closed: the process exited or was killed, or has given us up";

std::size_t bytes_of(std::span<const iovec> pieces) noexcept {
  std::size_t sum = 0;
  for (const iovec& piece : pieces) sum += piece.iov_len;
  return sum;
}

}  // namespace

TcpTransport::TcpTransport(Connector connector, std::uint32_t members)
    : connector_(std::move(connector)), connections_(members) {
  open_.reserve(members);
  blocked_.reserve(members);
  ended_.reserve(members);
}

TcpTransport::~TcpTransport() {
  push_blocked();
  // STR-S8: the peers may still take the rest.
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(stream::kFarewellNs);
  while (!blocked_.empty() && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
    push_blocked();
  }
  for (const Rank peer : open_) connections_[peer]->wire.close();
}

void TcpTransport::connect(Rank rank, std::span<const std::vector<std::byte>> endpoint_addresses,
                           std::span<const stream::Proof> ours,
                           std::span<const stream::Proof> theirs, std::uint64_t deadline_ns) {
  connector_.begin(rank, endpoint_addresses, ours, theirs, deadline_ns);
}

void TcpTransport::enter(Rank rank, std::span<const std::vector<std::byte>> endpoint_addresses,
                         std::span<const stream::Proof> ours, std::span<const stream::Proof> theirs,
                         std::span<const Rank> absent) {
  connections_.resize(endpoint_addresses.size());
  connector_.enter(rank, endpoint_addresses, ours, theirs, absent);
}

bool TcpTransport::connected() {
  while (std::optional<MadeConnection> made = connector_.next()) add(std::move(*made));
  if (!connector_.complete()) return false;
  if (!connector_.enters()) connector_.stop_listening();  // no other member can come yet
  return true;
}

void TcpTransport::add(MadeConnection made) {
  const Rank peer = made.peer;
  connections_[peer] = std::make_unique<Connection>(std::move(made), pool_);
  open_.push_back(peer);
  if (epoll_ >= 0)
    checked(watch_socket(*connections_[peer], false, EPOLL_CTL_ADD), "watching a connection");
}

// --- newcomers -----------------------------------------------------------------------------------

std::vector<std::byte> TcpTransport::endpoint() {
  connector_.listen();
  watch_calls();
  return connector_.endpoint_address();
}

void TcpTransport::admit(Rank first, std::span<const stream::Newcomer> newcomers) {
  const std::size_t ranks = first + newcomers.size();
  connections_.resize(ranks);
  for (std::vector<Rank>* const list : {&open_, &blocked_, &ended_, &linked_, &closed_, &unread_})
    list->reserve(ranks);
  connector_.admit(first, newcomers);
  watch_calls();
}

/// Watches what the connector waits for now.
void TcpTransport::watch_calls() {
  if (epoll_ < 0 || !connector_.listens()) return;
  if (!calls_) {
    calls_.emplace();
    constexpr epoll_data_t kNoRank{.u64 = UINT64_MAX};
    checked(watch_in(epoll_, EPOLL_CTL_ADD, calls_->get(), EPOLLIN, kNoRank),
            "watching for newcomers");
  }
  calls_->set(connector_.awaited());
}

void TcpTransport::look_around(std::uint64_t now_ns) noexcept {
  if (!calls_ || now_ns < look_at_calls_ns_) return;
  look_at_calls_ns_ = now_ns + kBetweenLooksNs;
  pollfd ready{calls_->get(), POLLIN, 0};
  if (::poll(&ready, 1, 0) > 0) take_calls();
}

/// Takes calls. A resource that is missing for one connection, such as a descriptor, may be there
/// for the next: a newcomer that finds its connection closed connects again.
void TcpTransport::take_calls() {
  try {
    while (std::optional<MadeConnection> made = connector_.next()) {
      const Rank peer = made->peer;
      add(std::move(*made));
      linked_.push_back(peer);
    }
    watch_calls();
  } catch (const Error&) {
    look_at_calls_ns_ = 0;
  }
}

void TcpTransport::tell_links(stream::Receiver& receiver) {
  for (const Rank peer : std::exchange(linked_, {}))
    if (usable(peer)) receiver.take_link(peer);
}

// --- sending -------------------------------------------------------------------------------------

std::byte* TcpTransport::lend(Rank to) noexcept {
  return can_send(to) ? connections_[to]->out.lend() : nullptr;
}

void TcpTransport::commit(Rank to, std::size_t bytes) noexcept {
  if (!can_send(to)) return;
  Connection& connection = *connections_[to];
  const bool was_blocked = connection.out.blocked();
  connection.sent_round = round_;
  note_error(connection, connection.out.commit(connection.wire, bytes));
  if (!was_blocked && connection.out.blocked()) blocked_.push_back(to);
}

bool TcpTransport::idle(Rank to) const noexcept {
  return usable(to) && connections_[to]->sent_round != round_ && !connections_[to]->out.blocked();
}

std::size_t TcpTransport::attach(Rank to, const std::byte* from, std::size_t bytes) noexcept {
  return can_send(to) ? connections_[to]->out.attach(from, bytes) : 0;
}

std::size_t TcpTransport::unsettled_bytes(Rank to) const noexcept {
  return usable(to) ? connections_[to]->out.unsettled_bytes() : 0;
}

void TcpTransport::settle(Rank to) noexcept {
  if (usable(to)) connections_[to]->out.settle();
}

void TcpTransport::relieve(stream::Receiver&) noexcept { push_blocked(); }

void TcpTransport::push_blocked() {
  std::erase_if(blocked_, [this](Rank peer) {
    if (!usable(peer)) return true;
    Connection& connection = *connections_[peer];
    note_error(connection, connection.out.push(connection.wire));
    return connection.ended || !connection.out.blocked();
  });
}

/// Notes that sending has failed, for good: lost bytes would leave a gap. What the peer has sent
/// before is still received, and then its end, which it makes when it sees ours.
void TcpTransport::note_error(Connection& connection, int error) {
  if (error == 0) return;
  connection.broken = true;
  connection.out.clear();
  connection.wire.end_sending();
  if (connection.why.empty())
    connection.why = "its connection broke, at " + connection.at + ": " + error_text(error);
}

// --- receiving -----------------------------------------------------------------------------------

void TcpTransport::progress(stream::Receiver& receiver) noexcept {
  ++round_;
  if (!closed_.empty()) give_back_closed();
  if (!linked_.empty()) tell_links(receiver);
  if (!unread_.empty()) receive_again(receiver);
  if (open_.size() <= kMostAskedDirectly || epoll_ < 0) {
    for (std::size_t i = 0; i < open_.size(); ++i)
      if (usable(open_[i])) receive(*connections_[open_[i]], receiver);
  } else {
    receive_from_ready(receiver);
  }
  if (!blocked_.empty()) push_blocked();
  if (!ended_.empty()) tell_ends(receiver);
}

void TcpTransport::receive_from_ready(stream::Receiver& receiver) {
  std::array<epoll_event, kMaxEvents> events;
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t tag = events[static_cast<std::size_t>(i)].data.u64;
    if (tag < connections_.size() && usable(static_cast<Rank>(tag)))
      receive(*connections_[tag], receiver);
  }
}

void TcpTransport::receive(Connection& connection, stream::Receiver& receiver) {
  for (int i = 0; i < kMostReceives; ++i) {
    const std::span<const iovec> pieces = connection.in.wanted(scratch_);
    const ssize_t count = connection.wire.receive(pieces);
    if (count == 0) return end(connection, kClosed);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0)
      return end(connection,
                 "its connection broke, at " + connection.at + ": " + error_text(errno));
    const auto bytes = static_cast<std::size_t>(count);
    const bool filled = bytes == bytes_of(pieces);
    if (!connection.in.take(bytes, connection.peer, receiver, scratch_)) {
      if (!connection.ended) end(connection, "it sent a frame that is not what it says it is");
      return;
    }
    if (!filled) return;
  }
  unread_.push_back(connection.peer);
}

/// Receives from those that may have more: a session may have decrypted more than was asked for, of
/// which the socket tells nothing.
void TcpTransport::receive_again(stream::Receiver& receiver) {
  for (const Rank peer : std::exchange(unread_, {}))
    if (usable(peer)) receive(*connections_[peer], receiver);
}

void TcpTransport::end(Connection& connection, std::string why) {
  connection.ended = true;
  if (connection.why.empty()) connection.why = std::move(why);
  ended_.push_back(connection.peer);
}

void TcpTransport::tell_ends(stream::Receiver& receiver) {
  for (const Rank peer : std::exchange(ended_, {}))
    if (connections_[peer] && connections_[peer]->wire.open())
      receiver.take_end(peer, connections_[peer]->why);
}

void TcpTransport::forget_places(std::span<const std::byte> memory) noexcept {
  for (const Rank peer : open_) connections_[peer]->in.forget_places(memory);
}

void TcpTransport::give_back_closed() noexcept {
  for (const Rank peer : closed_) connections_[peer].reset();
  closed_.clear();
}

/// Closes a connection. The object stays until the next round: its frame may be in the receiver's
/// hands.
void TcpTransport::close(Rank peer) noexcept {
  connector_.give_up(peer);
  if (peer >= connections_.size() || !connections_[peer]) return;
  Connection& connection = *connections_[peer];
  connection.ended = true;
  connection.in.close();
  connection.out.clear();
  if (epoll_ >= 0 && connection.wire.open())
    epoll_ctl(epoll_, EPOLL_CTL_DEL, connection.wire.descriptor(), nullptr);
  connection.wire.close();
  std::erase(open_, peer);
  if (std::ranges::find(closed_, peer) == closed_.end()) closed_.push_back(peer);
}

// --- waiting -------------------------------------------------------------------------------------

int TcpTransport::watch_socket(Connection& connection, bool room, int operation) noexcept {
  connection.watches_room = room;
  return watch_in(epoll_, operation, connection.wire.descriptor(),
                  room ? EPOLLIN | EPOLLOUT : EPOLLIN, {.u64 = connection.peer});
}

void TcpTransport::watch(int epoll) {
  epoll_ = epoll;
  for (const Rank peer : open_)
    checked(watch_socket(*connections_[peer], false, EPOLL_CTL_ADD), "watching a connection");
  watch_calls();
}

bool TcpTransport::may_wait() noexcept {
  for (const Rank peer : open_) {
    Connection& connection = *connections_[peer];
    const bool room = connection.out.blocked();
    if (!connection.ended && room != connection.watches_room)
      static_cast<void>(watch_socket(connection, room, EPOLL_CTL_MOD));
  }
  return ended_.empty() && unread_.empty() && linked_.empty();
}

}  // namespace dunlin::tcp

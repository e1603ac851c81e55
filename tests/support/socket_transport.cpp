#include "support/socket_transport.hpp"

#include <cstring>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>

#include "fabric/socket_address.hpp"
#include "fabric/stream/stream_backend.hpp"

namespace dunlin::test {
namespace {

constexpr int kMaxFramesAtOnce = 16;

SocketAddress address_of(const std::string& group, Rank rank) {
  return unix_address("dunlin-test:" + group + ":" + std::to_string(rank));
}

Descriptor new_socket() {
  return Descriptor(checked(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), "making a socket"));
}

class SocketTransport final : public stream::Transport {
 public:
  explicit SocketTransport(const SocketOptions& options)
      : options_(options), peers_(options.members) {
    const Descriptor listener = new_socket();
    const SocketAddress own = address_of(options.group, options.rank);
    checked(bind(listener.get(), own.generic(), own.bytes), "binding");
    checked(listen(listener.get(), static_cast<int>(options.members)), "listening");
    for (Rank lower = 0; lower < options.rank; ++lower) connect_to(lower);
    for (Rank i = options.rank + 1; i < options.members; ++i) accept_one(listener);
    for (Peer& peer : peers_)
      for (std::uint32_t i = 0; i < options.buffers; ++i)
        peer.free.push_back(std::make_unique<std::byte[]>(options.frame_bytes));
    incoming_ = std::make_unique<std::byte[]>(options.frame_bytes);
  }

  std::size_t frame_bytes() const noexcept override { return options_.frame_bytes; }

  std::byte* lend(Rank to) noexcept override {
    Peer& peer = peers_[to];
    if (!peer.socket || peer.free.empty()) return nullptr;
    return peer.free.back().get();
  }

  void commit(Rank to, std::size_t bytes) noexcept override {
    Peer& peer = peers_[to];
    if (!peer.socket) return;
    peer.under_way.emplace_back(std::move(peer.free.back()), bytes);
    peer.free.pop_back();
    push(peer);
  }

  bool idle(Rank to) const noexcept override { return peers_[to].under_way.empty(); }

  void progress(stream::Receiver& receiver) noexcept override {
    for (Rank rank = 0; rank < peers_.size(); ++rank) {
      push(peers_[rank]);
      for (int i = 0; i < kMaxFramesAtOnce && peers_[rank].socket; ++i)
        if (!take_one(rank, receiver)) break;
    }
  }

  void close(Rank rank) noexcept override {
    peers_[rank].socket.close();
    peers_[rank].under_way.clear();
  }

  void watch(int epoll) override {
    epoll_ = epoll;
    for (Peer& peer : peers_) {
      if (!peer.socket) continue;
      checked(watch_in(epoll, EPOLL_CTL_ADD, peer.socket.get(), EPOLLIN), "watching a socket");
    }
  }

  bool may_wait() noexcept override {
    for (Peer& peer : peers_) {
      if (!peer.socket) continue;
      const bool blocked = !peer.under_way.empty();
      watch_in(epoll_, EPOLL_CTL_MOD, peer.socket.get(), blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
    return true;
  }

 private:
  using Buffer = std::unique_ptr<std::byte[]>;
  struct Peer {
    Descriptor socket;
    std::vector<Buffer> free;
    std::deque<std::pair<Buffer, std::size_t>> under_way;
  };

  void connect_to(Rank rank) {
    const SocketAddress at = address_of(options_.group, rank);
    Descriptor socket = new_socket();
    while (connect(socket.get(), at.generic(), at.bytes) != 0) std::this_thread::yield();
    checked(static_cast<int>(::send(socket.get(), &options_.rank, sizeof options_.rank, 0)),
            "saying the rank");
    peers_[rank].socket = std::move(socket);
  }

  void accept_one(const Descriptor& listener) {
    Descriptor socket(
        checked(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC), "accepting"));
    Rank rank = 0;
    checked(static_cast<int>(recv(socket.get(), &rank, sizeof rank, 0)), "hearing the rank");
    peers_.at(rank).socket = std::move(socket);
  }

  static void push(Peer& peer) noexcept {
    while (peer.socket && !peer.under_way.empty()) {
      auto& [buffer, bytes] = peer.under_way.front();
      const ssize_t sent =
          ::send(peer.socket.get(), buffer.get(), bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)) return;
      // Sent, or nobody will ever take it. The last of the free ones may be lent.
      peer.free.insert(peer.free.begin(), std::move(buffer));
      peer.under_way.pop_front();
    }
  }

  bool take_one(Rank rank, stream::Receiver& receiver) {
    ssize_t got = -1;
    // A peer that hung up with unread packets shows as a reset first; what it sent is behind that.
    for (int tries = 0; got < 0 && tries < 3; ++tries) {
      got = recv(peers_[rank].socket.get(), incoming_.get(), options_.frame_bytes, MSG_DONTWAIT);
      if (got < 0 && errno != EINTR && errno != ECONNRESET) break;
    }
    if (got > 0) {
      receiver.take_frame(rank, {incoming_.get(), static_cast<std::size_t>(got)});
      return true;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      peers_[rank].socket.close();
      receiver.take_end(rank, "its connection closed");
    }
    return false;
  }

  SocketOptions options_;
  std::vector<Peer> peers_;
  Buffer incoming_;
  int epoll_ = -1;
};

}  // namespace

std::unique_ptr<stream::Transport> connect_sockets(const SocketOptions& options) {
  return std::make_unique<SocketTransport>(options);
}

std::unique_ptr<Fabric> join_over_sockets(const SocketOptions& options,
                                          std::uint32_t silence_timeout_ms) {
  const auto proof = [](Rank from, Rank to) {
    stream::Proof made{};
    made[0] = static_cast<std::byte>(from);
    made[1] = static_cast<std::byte>(to);
    return made;
  };
  stream::Attachment attachment{.kind = "stream",
                                .description = "Unix sockets of a test",
                                .group = options.group,
                                .rank = options.rank,
                                .names = {},
                                .host_members = options.members,
                                .silence_timeout_ms = silence_timeout_ms,
                                .our_proofs = {},
                                .their_proofs = {},
                                .transport = connect_sockets(options)};
  for (Rank peer = 0; peer < options.members; ++peer) {
    attachment.names.push_back("node" + std::to_string(peer));
    attachment.our_proofs.push_back(proof(options.rank, peer));
    attachment.their_proofs.push_back(proof(peer, options.rank));
  }
  return stream::make_stream_fabric(std::move(attachment));
}

}  // namespace dunlin::test

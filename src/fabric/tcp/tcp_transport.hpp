#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fabric/stepped_join.hpp"
#include "fabric/stream/transport.hpp"
#include "fabric/tcp/connector.hpp"
#include "fabric/tcp/incoming.hpp"
#include "fabric/tcp/outgoing.hpp"
#include "fabric/tcp/wire.hpp"

/// The Transport over TCP: one connection to each peer. connector.hpp makes connections, one by
/// one; add() takes each. outgoing.hpp and incoming.hpp say what holds of the two directions.
///  TCP-T1  A call to the kernel hands over a whole frame, with all that is behind it, or what is
///      left of one. A frame counts as under way until the next progress(), so what is posted one
///      by one leaves in batches.
///  TCP-T2  The end of a connection is told after all frames that came on it.
///  TCP-T3  All sockets are in the fabric's epoll set, level-triggered: bytes to receive, room for
///      frames that wait to be sent, and connections of newcomers end a sleep.
namespace dunlin::tcp {

class TcpTransport final : public stream::Transport {
 public:
  explicit TcpTransport(Connector connector, std::uint32_t members);
  ~TcpTransport() override;

  // --- while the group forms (NetworkJoin) -------------------------------------------------------
  [[nodiscard]] std::vector<std::byte> endpoint_address() const {
    return connector_.endpoint_address();
  }
  void connect(Rank rank, std::span<const std::vector<std::byte>> endpoint_addresses,
               std::span<const stream::Proof> ours, std::span<const stream::Proof> theirs,
               std::uint64_t deadline_ns);
  /// Makes progress; true once there is a connection to each peer. Throws Error that names the
  /// missing members when the time is up.
  [[nodiscard]] bool connected();
  [[nodiscard]] Awaited awaited() const { return connector_.awaited(); }
  /// Begins as a newcomer, instead of connect(): goes on listening.
  void enter(Rank rank, std::span<const std::vector<std::byte>> endpoint_addresses,
             std::span<const stream::Proof> ours, std::span<const stream::Proof> theirs,
             std::span<const Rank> absent);
  [[nodiscard]] std::vector<Rank> unconnected() const { return connector_.unconnected(); }

  /// Adds the connection to a peer that has none yet.
  void add(MadeConnection made);

  // --- Transport ---------------------------------------------------------------------------------
  [[nodiscard]] std::size_t frame_bytes() const noexcept override { return stream::kMaxFrameBytes; }
  [[nodiscard]] std::byte* lend(Rank to) noexcept override;
  void commit(Rank to, std::size_t bytes) noexcept override;
  [[nodiscard]] bool idle(Rank to) const noexcept override;
  void progress(stream::Receiver& receiver) noexcept override;
  void relieve(stream::Receiver& receiver) noexcept override;
  void close(Rank peer) noexcept override;
  void watch(int epoll) override;
  [[nodiscard]] bool may_wait() noexcept override;
  [[nodiscard]] bool carries_behind() const noexcept override { return true; }
  [[nodiscard]] std::size_t attach(Rank to, const std::byte* from,
                                   std::size_t bytes) noexcept override;
  [[nodiscard]] std::size_t unsettled_bytes(Rank to) const noexcept override;
  void settle(Rank to) noexcept override;
  void forget_places(std::span<const std::byte> memory) noexcept override;
  void look_around(std::uint64_t now_ns) noexcept override;
  [[nodiscard]] std::vector<std::byte> endpoint() override;
  void admit(Rank first, std::span<const stream::Newcomer> newcomers) override;
  [[nodiscard]] bool is_on_this_host(std::span<const std::byte> endpoint) const override {
    return connector_.is_on_this_host(endpoint);
  }

 private:
  struct Connection {
    Connection(MadeConnection made, FramePool& pool)
        : peer(made.peer), wire(std::move(made.wire)), at(std::move(made.at)), out(pool) {}
    Rank peer;
    Wire wire;
    std::string at;  // "10.0.0.7:40112"
    Outgoing out;
    Incoming in;
    std::uint64_t sent_round = 0;  // the last round in which a frame was sent
    bool ended = false;
    bool broken = false;  // true: nothing can be sent
    bool watches_room = false;
    std::string why = {};
  };

  [[nodiscard]] bool usable(Rank peer) const noexcept {
    return peer < connections_.size() && connections_[peer] && !connections_[peer]->ended;
  }
  /// Whether the peer can be sent frames: not once sending has failed, because a frame may have
  /// gone in part.
  [[nodiscard]] bool can_send(Rank peer) const noexcept {
    return usable(peer) && !connections_[peer]->broken;
  }
  void receive(Connection& connection, stream::Receiver& receiver);
  void receive_from_ready(stream::Receiver& receiver);
  void receive_again(stream::Receiver& receiver);
  void push_blocked();
  void take_calls();
  void watch_calls();
  void tell_links(stream::Receiver& receiver);
  void give_back_closed() noexcept;
  void tell_ends(stream::Receiver& receiver);
  void note_error(Connection& connection, int error);
  void end(Connection& connection, std::string why);
  int watch_socket(Connection& connection, bool room, int operation) noexcept;

  FramePool pool_;
  Scratch scratch_;
  Connector connector_;                     // used until all are connected, or for good
  std::optional<AwaitedDescriptor> calls_;  // in the epoll set while it listens
  std::uint64_t look_at_calls_ns_ = 0;      // the next look
  std::vector<Rank> linked_;                // newcomers that were not reported yet
  std::vector<std::unique_ptr<Connection>> connections_;  // by rank
  std::vector<Rank> open_;
  std::vector<Rank> blocked_;  // peers whose frames the kernel has not all taken
  std::vector<Rank> ended_;    // ends that were not reported yet
  std::vector<Rank> closed_;   // peers with memory to be given back
  std::vector<Rank> unread_;   // peers that may have sent more than the last round received
  std::uint64_t round_ = 1;
  int epoll_ = -1;
};

}  // namespace dunlin::tcp

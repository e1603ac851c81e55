#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fabric/stepped_join.hpp"
#include "fabric/stream/frame.hpp"
#include "fabric/tcp/endpoint.hpp"
#include "fabric/tcp/wire.hpp"

/// Makes the connections of one member to its peers, one after the other. The lower rank calls, the
/// higher accepts. A caller first sends a ticket: who it is, whom it means, and the proof of
/// STR-S7.
///  TCP-C1  A connection counts as a peer's only when its ticket has that peer's proof, which is
///      compared in constant time. The first connection with it counts, and no other.
///  TCP-C2  Strangers hold a bounded number of descriptors: at most kMaxStrangers besides one for
///      each peer that is missing, for kTicketPatienceNs each; beyond that the oldest is closed.
namespace dunlin::tcp {

inline constexpr std::size_t kMaxStrangers = 64;
inline constexpr std::uint64_t kTicketPatienceNs = 10'000'000'000;

/// What a caller says first.
struct Ticket {
  std::array<char, 8> magic{'D', 'N', 'L', 'N', 'C', 'A', 'L', 'L'};
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  stream::Proof proof{};
};
static_assert(sizeof(Ticket) == 48);

struct MadeConnection {
  Rank peer;
  Wire wire;
  std::string at;  // "10.0.0.7:40112", for messages
};

class Connector {
 public:
  Connector(Listener listener, bool encrypts);

  [[nodiscard]] std::vector<std::byte> endpoint_address() const;
  /// All know each other's endpoints: begins to call the ranks above ours. Error if what a peer
  /// says cannot be, or differs from ours where it must not. `ours` and `theirs` are the proofs of
  /// STR-S7, by peer.
  void begin(Rank rank, std::span<const std::vector<std::byte>> endpoint_addresses,
             std::span<const stream::Proof> ours, std::span<const stream::Proof> theirs,
             std::uint64_t deadline_ns);
  /// The next connection that is made, if one is by now. Error if one cannot be made, or if the
  /// time is up, which names who is missing.
  [[nodiscard]] std::optional<MadeConnection> next();
  [[nodiscard]] bool complete() const noexcept { return missing_ == 0; }
  [[nodiscard]] Awaited awaited() const;

 private:
  struct Peer {
    Endpoint endpoint;
    std::string at;
    stream::Proof ours;
    stream::Proof theirs;
    Wire calling;
    bool shakes_hands = false;  // the connection stands
    short awaits = POLLOUT;
    bool connected = false;
  };
  /// Has connected to us, and not shown its ticket yet.
  struct Stranger {
    Wire wire = {};
    std::uint64_t until_ns = 0;
    short awaits = POLLIN;
    Ticket ticket = {};
    std::size_t have = 0;
  };

  void check_agreement() const;
  void call(Rank peer);
  [[nodiscard]] bool finish_call(Rank peer);
  [[nodiscard]] bool is_through(Peer& called, Rank peer) const;
  void accept_strangers(std::uint64_t now_ns);
  /// Who it is, if its ticket is whole and right; `gone` if it must be closed.
  [[nodiscard]] std::optional<Rank> read_ticket(Stranger& stranger, bool& gone);
  [[nodiscard]] MadeConnection made(Rank peer, Wire wire);
  [[nodiscard]] std::string who(Rank peer) const;
  [[nodiscard]] std::string missing() const;

  Listener listener_;
  std::unique_ptr<Security> security_;  // if we encrypt, from begin()
  bool encrypts_;
  Rank rank_ = 0;
  std::vector<Peer> peers_;  // by rank
  std::vector<Stranger> strangers_;
  std::size_t missing_ = SIZE_MAX;  // until begin()
  std::uint64_t deadline_ns_ = 0;
};

}  // namespace dunlin::tcp

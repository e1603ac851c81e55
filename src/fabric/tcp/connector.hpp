#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fabric/backoff.hpp"
#include "fabric/stepped_join.hpp"
#include "fabric/stream/frame.hpp"
#include "fabric/stream/transport.hpp"
#include "fabric/tcp/endpoint.hpp"
#include "fabric/tcp/wire.hpp"

/// Makes the connections of one member to its peers, one after the other. The lower rank calls, the
/// higher accepts; but a newcomer connects to the members that were here before (STR-J1). A caller
/// first sends a ticket: its own rank, the rank that it connects to, and the proof of STR-S7.
///  TCP-C1  A connection counts as a peer's only when its ticket has that peer's proof, which is
///      compared in constant time. The first connection with it counts, and no other.
///  TCP-C2  Strangers hold a bounded number of descriptors: at most kMaxStrangers besides one for
///      each peer that is missing, for kTicketPatienceNs each; beyond that the oldest is closed.
///  TCP-C3  A newcomer's ticket is answered by a welcome, or by the end of the connection. Only a
///      connection with a welcome counts for the newcomer; without one it calls again.
namespace dunlin::tcp {

inline constexpr std::size_t kMaxStrangers = 64;
inline constexpr std::uint64_t kTicketPatienceNs = 10'000'000'000;

/// The first bytes that a member sends which connects.
struct Ticket {
  std::array<char, 8> magic{'D', 'N', 'L', 'N', 'C', 'A', 'L', 'L'};
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  stream::Proof proof{};
};
static_assert(sizeof(Ticket) == 48);
/// The answer to a newcomer's ticket.
inline constexpr std::array<char, 8> kWelcome{'D', 'N', 'L', 'N', 'C', 'O', 'M', 'E'};

struct MadeConnection {
  Rank peer;
  Wire wire;
  std::string at;  // "10.0.0.7:40112", for messages
};

class Connector {
 public:
  Connector(Listener listener, bool encrypts);

  [[nodiscard]] std::vector<std::byte> endpoint_address() const;
  /// Begins to call the ranks above ours: all know each other's endpoints. Throws Error if what a
  /// peer says cannot be, or differs from ours where it must not. `ours` and `theirs` are the
  /// proofs of STR-S7, by peer.
  void begin(Rank rank, std::span<const std::vector<std::byte>> endpoint_addresses,
             std::span<const stream::Proof> ours, std::span<const stream::Proof> theirs,
             std::uint64_t deadline_ns);
  /// Begins, for a newcomer, to call all ranks below its own that are not absent, as often as it
  /// takes, and to be called by all above.
  void enter(Rank rank, std::span<const std::vector<std::byte>> endpoint_addresses,
             std::span<const stream::Proof> ours, std::span<const stream::Proof> theirs,
             std::span<const Rank> absent);
  /// Expects calls of newcomers, the first of which has the rank `first`.
  void admit(Rank first, std::span<const stream::Newcomer> newcomers);
  /// Expects the peer no more.
  void give_up(Rank peer) noexcept;
  /// Returns the next connection that is made, if one is by now. Throws Error if one cannot be
  /// made, or if the time is up, and names the missing members then.
  [[nodiscard]] std::optional<MadeConnection> next();
  [[nodiscard]] bool complete() const noexcept { return missing_ == 0; }
  [[nodiscard]] std::vector<Rank> unconnected() const;
  [[nodiscard]] Awaited awaited() const;

  /// Whether the connector goes on listening when all are connected.
  [[nodiscard]] bool enters() const noexcept { return enters_; }
  [[nodiscard]] bool listens() const noexcept { return static_cast<bool>(listener_.socket); }
  /// Stops listening, and closes the connections of strangers.
  void stop_listening() noexcept;
  /// Listens at a new port, if it does not listen.
  void listen();
  [[nodiscard]] bool is_on_this_host(std::span<const std::byte> endpoint_address) const;

 private:
  /// Which side connects; neither if there is to be no connection, or is one already.
  enum class Caller : std::uint8_t { nobody, we, they };
  struct Peer {
    Caller caller = Caller::nobody;
    Endpoint endpoint = {};
    std::string at = {};  // empty: unknown
    stream::Proof ours = {};
    stream::Proof theirs = {};
    Wire calling = {};
    bool shakes_hands = false;  // the connection is made, but the handshake is not
    bool ticket_sent = false;
    std::array<char, kWelcome.size()> answer = {};
    std::size_t answer_bytes = 0;
    short awaits = POLLOUT;
    std::uint64_t call_again_ns = UINT64_MAX;
    Backoff pauses{500'000, 32'000'000};  // before a call is repeated
  };
  /// A caller that has connected to us, and not shown its ticket yet.
  struct Stranger {
    Wire wire = {};
    std::uint64_t until_ns = 0;
    short awaits = POLLIN;
    Ticket ticket = {};
    std::size_t have = 0;
  };

  void meet(std::span<const std::vector<std::byte>> endpoint_addresses,
            std::span<const stream::Proof> ours, std::span<const stream::Proof> theirs,
            std::span<const Rank> absent);
  void check_agreement() const;
  void call(Rank peer);
  void call_again(std::uint64_t now_ns);
  [[nodiscard]] bool finish_call(Rank peer, std::uint64_t now_ns);
  [[nodiscard]] bool goes_through(Rank peer);
  [[nodiscard]] bool is_through(Peer& called, Rank peer) const;
  void send_ticket(Peer& called, Rank peer) const;
  [[nodiscard]] bool is_welcome(Peer& called, Rank peer) const;
  void accept_strangers(std::uint64_t now_ns);
  [[nodiscard]] std::optional<MadeConnection> next_call(std::uint64_t now_ns);
  [[nodiscard]] static bool send_welcome(Wire& wire) noexcept;
  /// The stranger's rank, if its ticket is whole and right; sets `gone` if it must be closed.
  [[nodiscard]] std::optional<Rank> read_ticket(Stranger& stranger, bool& gone);
  [[nodiscard]] MadeConnection made(Rank peer, Wire wire);
  [[nodiscard]] std::string who(Rank peer) const;
  [[nodiscard]] std::string missing() const;

  Listener listener_;
  std::unique_ptr<Security> security_;  // set by begin(), if we encrypt
  bool encrypts_;
  bool enters_ = false;  // whether this member is a newcomer
  Rank rank_ = 0;
  std::vector<Peer> peers_;  // by rank
  std::vector<Stranger> strangers_;
  std::size_t missing_ = SIZE_MAX;  // unknown until begin()
  std::uint64_t deadline_ns_ = UINT64_MAX;
};

}  // namespace dunlin::tcp

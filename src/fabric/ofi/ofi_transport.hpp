#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fabric/backoff.hpp"
#include "fabric/ofi/envelope.hpp"
#include "fabric/ofi/handles.hpp"
#include "fabric/ofi/provider.hpp"
#include "fabric/stepped_join.hpp"
#include "fabric/stream/frame.hpp"
#include "fabric/stream/transport.hpp"

/// The Transport over libfabric: a connected endpoint to each peer, one completion queue, one event
/// queue. connections.cpp makes the endpoints, ofi_transport.cpp moves frames.
///  OFI-T1  A buffer belongs either to us (free, or lent) or to libfabric (posted to an endpoint),
///      and comes back by its completion only; or, where OFI-T3 has it watched, when its frame is
///      whole.
///  OFI-T2  Endpoints are closed before the memory that they may still write to is let go.
///  OFI-T3  Receive buffers of a link are filled in the order in which they were posted. Where the
///      provider fills them from the front, they are watched (envelope.hpp); elsewhere their
///      completions tell.
///  OFI-T4  A small frame is copied by libfabric at once, and its buffer stays ours; but of
///      kInjectedAtMost in a row one goes the usual way, so that a peer that takes nothing stops
///      us.
///  OFI-T5  We sleep only after a round in which nothing has come or gone.
///  OFI-T6  A link never moves, since libfabric holds pointers to its buffers' contexts, and these
///      stay as long as the transport. The memory of its buffers goes when its endpoint is closed
///      and no frame in it is handed on any more.
namespace dunlin::ofi {

inline constexpr std::size_t kFrameBytes = stream::kMaxFrameBytes;
inline constexpr std::size_t kBufferBytes = kFrameBytes + kEnvelopeBytes;
inline constexpr std::uint32_t kBuffersEachWay = 4;
inline constexpr std::uint32_t kInjectedAtMost = 16;

class OfiTransport final : public stream::Transport {
 public:
  /// Makes everything that needs no peer, and listens.
  OfiTransport(Network& network, std::uint32_t members);
  ~OfiTransport() override;

  /// The address that a peer needs to connect to this member. Requires that this member listens.
  [[nodiscard]] std::vector<std::byte> endpoint_address() const;
  /// Begins to connect to all ranks above this member's, and to be called by all below. `ours` and
  /// `theirs` are the proofs of STR-S7, by peer.
  void connect(Rank rank, std::span<const std::vector<std::byte>> endpoint_addresses,
               std::span<const stream::Proof> ours, std::span<const stream::Proof> theirs,
               std::uint64_t deadline_ns);
  /// Begins, for a newcomer, to connect to all ranks below its own that are not absent, as often as
  /// it takes, and to be called by all above. Goes on listening.
  void enter(Rank rank, std::span<const std::vector<std::byte>> endpoint_addresses,
             std::span<const stream::Proof> ours, std::span<const stream::Proof> theirs,
             std::span<const Rank> absent);
  /// Makes progress; true once there is a connection to each peer. Throws Error that names the
  /// missing members when the time is up.
  [[nodiscard]] bool connected();
  /// The ranks of the missing members.
  [[nodiscard]] std::vector<Rank> unconnected() const;
  /// What connected() waits for.
  [[nodiscard]] Awaited awaited() const;

  [[nodiscard]] std::size_t frame_bytes() const noexcept override { return kFrameBytes; }
  [[nodiscard]] std::byte* lend(Rank to) noexcept override;
  void commit(Rank to, std::size_t bytes) noexcept override;
  [[nodiscard]] bool idle(Rank to) const noexcept override;
  void progress(stream::Receiver& receiver) noexcept override;
  void close(Rank peer) noexcept override;
  void watch(int epoll) override;
  [[nodiscard]] bool may_wait() noexcept override;
  [[nodiscard]] std::vector<std::byte> endpoint() override;
  void admit(Rank first, std::span<const stream::Newcomer> newcomers) override;
  [[nodiscard]] bool is_on_this_host(std::span<const std::byte> endpoint) const override;

 private:
  struct Buffer {
    fi_context2 context;  // first, so that a completion leads here
    std::byte* bytes;     // kBufferBytes long, for a frame in its envelope
    std::uint32_t used;
    Rank peer;
    bool receives;
  };
  /// Which side connects; neither if there is to be no connection, or is none any more.
  enum class Caller : std::uint8_t { nobody, we, they };
  struct Link {
    Caller caller = Caller::nobody;
    std::vector<std::byte> endpoint_address;  // if we call
    stream::Proof ours{};                     // used until there is a connection
    stream::Proof theirs{};
    std::uint64_t call_again_ns = UINT64_MAX;
    Backoff pauses{500'000, 32'000'000};  // before a call is repeated
    std::unique_ptr<std::byte[]> memory;
    Fid<fid_mr> registration;
    std::array<Buffer, 2 * kBuffersEachWay> buffers;
    std::vector<Buffer*> free;    // to compose frames in; the last one is lent
    std::deque<Buffer*> waiting;  // committed, but the queue was full
    std::uint32_t under_way = 0;
    std::uint32_t injected = 0;        // injected in a row
    std::uint64_t injected_round = 0;  // round of the last injection
    std::uint32_t next_to_fill = 0;    // among the buffers that receive
    Marks sent;
    Marks received;
    bool connected = false;
    bool ended = false;
    bool closed = false;
    std::string why;
    std::string at;        // "10.0.0.7:40112"; empty if unknown
    Fid<fid_ep> endpoint;  // last, so that it is closed first (OFI-T2)
  };

  /// The private data of a connection request.
  struct Ticket {
    std::uint32_t from = 0;
    stream::Proof proof{};
  };
  static_assert(sizeof(Ticket) == 36, "within what every provider takes along with a connection");
  /// An event of a connection.
  struct Happening {
    std::uint32_t kind = 0;
    int error = 0;  // not 0: the connection failed, whatever the kind
    fid* endpoint = nullptr;
    Info info;  // for a call
    Ticket ticket{};
    bool has_ticket = false;
  };

  // These are in connections.cpp.
  void listen();
  void expect(Rank peer, Caller caller, std::span<const std::byte> endpoint_address,
              const stream::Proof& ours, const stream::Proof& theirs);
  [[nodiscard]] fid_ep* open_endpoint(Rank peer, fi_info* info);
  void make_buffers(Rank peer);
  void call(Rank peer);
  void call_again();
  [[nodiscard]] bool is_welcome(const Happening& call) const;
  void refuse(const Happening& call) const noexcept;
  void answer(const Happening& call);
  void stand(Rank peer);
  void not_yet(Rank peer) noexcept;
  [[nodiscard]] bool next_happening(Happening& happening);
  void take(const Happening& happening);
  [[nodiscard]] std::string who(Rank peer) const;
  [[nodiscard]] std::string missing() const;

  // These are in ofi_transport.cpp.
  [[nodiscard]] void* descriptor_of(const Link& link) const noexcept;
  [[nodiscard]] std::array<int, 2> descriptors() const;
  void post_receive(Buffer& buffer) noexcept;
  [[nodiscard]] bool inject(Link& link, const Buffer& buffer) noexcept;
  void post_send(Buffer& buffer) noexcept;
  void post_waiting(Link& link) noexcept;
  std::size_t receive(stream::Receiver& receiver);
  [[nodiscard]] static Arrival look_at(const Link& link,
                                       std::span<const std::byte>& frame) noexcept;
  [[nodiscard]] static bool holds_frame(const Link* link) noexcept;
  bool take_next(Link& link, stream::Receiver& receiver);
  void complete(Buffer& buffer, stream::Receiver& receiver);
  std::size_t drain_completions(stream::Receiver& receiver);
  void take_completion_error() noexcept;
  void take_events(stream::Receiver& receiver) noexcept;
  void take_later(const Happening& happening, stream::Receiver& receiver);
  void take_newcomer(const Happening& happening, Rank peer, stream::Receiver& receiver) noexcept;
  void give_back_closed() noexcept;
  void end(Rank peer, std::string why) noexcept;
  void fail(Rank peer, const char* what, int error) noexcept;
  [[nodiscard]] Rank peer_of(const fid* endpoint) const noexcept;

  Info info_;
  bool watches_buffers_;
  Rank rank_ = UINT32_MAX;  // unknown yet
  Fid<fid_fabric> fabric_;
  Fid<fid_domain> domain_;
  Fid<fid_eq> events_;
  Fid<fid_cq> completions_;
  Fid<fid_pep> listener_;
  bool enters_ = false;            // calls again, and goes on listening
  std::uint64_t deadline_ns_ = 0;  // while this member connects
  std::deque<Link> links_;         // by rank; none moves (OFI-T6)
  std::vector<Link*> standing_;    // links with a connection now or at the start of this round
  std::vector<Rank> closed_;       // peers with memory to be given back
  std::vector<Rank> ended_;        // ends that were not reported yet
  std::uint64_t round_ = 1;
  bool idle_round_ = false;  // nothing has moved in the last round, nor since
  std::uint32_t rounds_until_events_ = 1;
  bool postponed_ = false;     // a look at events is postponed by a round
  std::uint32_t waiting_ = 0;  // buffers that a full queue refused
};

}  // namespace dunlin::ofi

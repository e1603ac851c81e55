#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/stepped_join.hpp"
#include "fabric/stream/frame.hpp"
#include "fabric/stream/transport.hpp"
#include "fabric/verbs/device.hpp"
#include "fabric/verbs/send_queue.hpp"

/// The Transport over RDMA devices: a reliable connected queue pair to each peer,
/// one completion queue, one protection domain. connections.cpp makes the queue pairs, frames.cpp
/// moves frames, one_sided.cpp does what needs no peer, memory.cpp registers.
///  VRB-V1  A frame is sent only when the peer has a buffer posted for it. How many of them were
///      used and posted again is said in four bytes behind a frame that is sent anyway, or else
///      alone; for such messages there are buffers besides.
///  VRB-V2  Queue pairs are destroyed before the memory that they may still touch is let go.
///  VRB-V3  The accepting side of a connection sends nothing before it has received something.
///  VRB-V5  The completion queue has room for the slots of as many members as there can be at a
///      time, from the beginning; and a link never moves. So a newcomer costs its own queue pair
///      and the frames of that, and nothing else is made or registered again.
namespace dunlin::verbs {

inline constexpr std::size_t kFrameBytes = stream::kMinFrameBytes;
/// The size of a buffer: a frame with the count behind it (VRB-V1).
inline constexpr std::size_t kBufferBytes = kFrameBytes + kCacheLineBytes;
inline constexpr std::uint32_t kFrames = 8;  // under way to a peer
inline constexpr std::uint32_t kReceives = kFrames + 2;
/// The slots of a send queue for frames, and for saying how many were received.
inline constexpr std::uint32_t kReservedSlots = kFrames + 4;
inline constexpr std::uint32_t kMaxSlots = 512;
inline constexpr std::uint32_t kMinSlots = 64;
/// A group can have at least so many members at a time, however few it begins with (VRB-V5).
inline constexpr std::uint32_t kRoomForMembers = 64;

/// A request's number has 32 bits that count, a bit that says whether it receives, and the tag of
/// its link.
inline constexpr unsigned kPeerShift = 40;
inline constexpr unsigned kGenerationShift = 33;
inline constexpr std::uint64_t kReceiveBit = std::uint64_t{1} << 32;
inline constexpr std::uint64_t kTagMask = ~((std::uint64_t{1} << kGenerationShift) - 1);

struct FreePages {
  std::size_t bytes = 0;
  void operator()(std::byte* pages) const noexcept;
};
using Pages = std::unique_ptr<std::byte, FreePages>;

class VerbsTransport final : public stream::Transport, public stream::DeviceOperations {
 public:
  /// Makes everything that needs no peer, and listens.
  VerbsTransport(const Network& network, std::uint32_t members);
  ~VerbsTransport() override;

  /// The device, its address, and its promises, in a line.
  [[nodiscard]] std::string description() const;
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
  void look_around(std::uint64_t now_ns) noexcept override;
  void progress(stream::Receiver& receiver) noexcept override;
  void relieve(stream::Receiver& receiver) noexcept override;
  void close(Rank peer) noexcept override;
  [[nodiscard]] stream::DeviceOperations* device() noexcept override { return this; }
  void watch(int epoll) override;
  [[nodiscard]] bool may_wait() noexcept override;
  [[nodiscard]] std::vector<std::byte> endpoint() override;
  void admit(Rank first, std::span<const stream::Newcomer> newcomers) override;
  [[nodiscard]] bool is_on_this_host(std::span<const std::byte> endpoint) const override;

  [[nodiscard]] const Abilities& abilities() const noexcept override { return abilities_; }
  [[nodiscard]] stream::Key open(std::span<std::byte> memory) override;
  void close(std::span<std::byte> memory) noexcept override;
  [[nodiscard]] bool can(const Operation& operation) const noexcept override;
  [[nodiscard]] Started start(const Operation& operation, const stream::Key& region,
                              std::uint64_t region_bytes) noexcept override;
  void ring(Rank peer) noexcept override;
  [[nodiscard]] std::uint64_t started(Rank peer) const noexcept override;
  [[nodiscard]] std::uint64_t fetches(Rank peer) const noexcept override;
  [[nodiscard]] bool finished(Rank peer, std::uint64_t up_to) const noexcept override;
  void forget(const Completion& completion) noexcept override;
  void give_up(Rank peer, stream::Receiver& receiver) noexcept override;

 private:
  /// Memory that is registered, until its last user is gone.
  struct Opened {
    std::span<std::byte> memory;
    Memory registration;
  };
  /// Which side connects; neither if there is to be no connection, or is none any more.
  enum class Caller : std::uint8_t { nobody, we, they };
  struct Link {
    Caller caller = Caller::nobody;
    std::vector<std::byte> endpoint_address;  // if we call
    stream::Proof ours{};                     // used until there is a connection
    stream::Proof theirs{};
    Pages pages;                   // for frames to send, frames to receive, and staging
    Memory frames;                 // least rights: only our device may touch it
    Memory staging;                // also touched, on iWARP, by the answers to reads
    std::vector<std::byte*> free;  // buffers for frames; the last one may be lent
    SendQueue queue;
    std::uint64_t tag = 0;   // in its requests: the peer, and a count of its connections
    std::uint32_t sent = 0;  // frames sent, modulo 2^32
    std::uint32_t received_there = 0;
    std::uint32_t received = 0;
    std::uint32_t told = 0;
    std::uint32_t under_way = 0;
    bool connected = false;
    bool may_speak = true;
    bool ended = false;
    bool closed = false;
    std::uint64_t call_again_ns = 0;
    std::string why;
    std::string at;  // "10.0.0.7:40112"
    Id id;           // last, so that the queue pair goes first (VRB-V2)
  };
  struct Ticket {
    std::uint32_t from = 0;
    stream::Proof proof{};
  };
  /// An event of a connection, copied, so that librdmacm can have its own back.
  struct Happening {
    rdma_cm_event_type what{};
    rdma_cm_id* id = nullptr;
    int status = 0;
    Ticket ticket{};
    bool has_ticket = false;
    Depths offered{};
  };
  /// A buffer whose frame was handled.
  struct Spent {
    Rank peer;
    std::uint32_t buffer;
  };

  // These are in connections.cpp.
  void listen(int backlog);
  void grow(std::size_t ranks, std::size_t gone);
  /// Whether our device must do atomics on our own memory.
  [[nodiscard]] bool needs_mirror() const noexcept {
    return abilities_.atomics && !abilities_.atomics_coherent_with_cpu;
  }
  void make_queues(std::uint32_t members);
  void expect(Rank peer, Caller caller, std::span<const std::byte> endpoint_address,
              const stream::Proof& ours, const stream::Proof& theirs);
  void open_link(Rank peer, rdma_cm_id& id);
  void create_pair(rdma_cm_id& id, std::uint32_t slots, std::uint32_t receives);
  void call(Rank peer);
  [[nodiscard]] bool is_welcome(const Happening& event) const;
  void answer(const Happening& event);
  void stand(Rank peer) noexcept;
  void not_yet(Rank peer, std::string why);
  void call_again();
  void take(const Happening& event);
  void go_on(Rank peer, const Happening& event);
  [[nodiscard]] bool next_happening(Happening& event);
  [[nodiscard]] std::string who(Rank peer) const;
  [[nodiscard]] std::string missing() const;
  [[nodiscard]] static rdma_conn_param parameters(const Depths& depths,
                                                  const Ticket* ticket) noexcept;

  // These are in frames.cpp.
  void post_receive(Rank peer, std::uint32_t buffer) noexcept;
  [[nodiscard]] std::byte* receive_buffer(const Link& link, std::uint32_t buffer) const noexcept;
  void report_received(Rank peer) noexcept;
  void return_buffers() noexcept;
  std::size_t drain(stream::Receiver& receiver);
  void take_completion(const ibv_wc& completion, stream::Receiver& receiver);
  void take_received(Rank peer, const ibv_wc& completion, stream::Receiver& receiver);
  [[nodiscard]] bool take_count(Rank peer, const ibv_wc& completion) noexcept;
  void take_record(Rank peer, const Record& record, stream::Receiver& receiver);
  void end(Rank peer, std::string why) noexcept;
  void take_later(const Happening& event) noexcept;
  void take_newcomer(Rank peer, const Happening& event);
  void tell_arrived(stream::Receiver& receiver);
  void give_back_closed() noexcept;
  [[nodiscard]] Rank peer_of(const rdma_cm_id* id) const noexcept;
  [[nodiscard]] Rank peer_of(const ibv_wc& completion) const noexcept;

  // These are in one_sided.cpp.
  [[nodiscard]] Started start_write(const Operation& operation, const stream::Key& region,
                                    std::uint64_t region_bytes) noexcept;
  [[nodiscard]] Started start_read(const Operation& operation, const stream::Key& region) noexcept;
  [[nodiscard]] Started start_atomic(const Operation& operation,
                                     const stream::Key& region) noexcept;
  void add_proof_of_placement(const Operation& operation, const stream::Key& region,
                              std::uint64_t region_bytes) noexcept;
  [[nodiscard]] bool has_room(const Link& link, std::uint32_t requests) const noexcept;
  void give_result(const Link& link, const Record& record) const noexcept;

  // These are in memory.cpp.
  [[nodiscard]] Memory register_memory(std::span<std::byte> memory, int rights,
                                       const char* what) const;
  [[nodiscard]] const Opened* opened(const void* from, std::size_t bytes) const noexcept;

  Network network_;
  EventChannel events_;
  Id listener_;
  Traits traits_;
  Domain domain_;
  CompletionChannel channel_;
  CompletionQueue completions_;
  Abilities abilities_;
  std::uint32_t slots_ = kMaxSlots;
  std::uint32_t inline_bytes_ = 0;  // what every queue pair can send inline
  std::uint32_t pairs_ = 0;

  Rank rank_ = UINT32_MAX;          // unknown yet
  bool enters_ = false;             // goes on listening
  bool works_ = false;              // all were connected: a later member is a newcomer
  std::uint64_t deadline_ns_ = 0;   // while this member connects
  std::uint32_t most_members_ = 0;  // at a time (VRB-V5)
  std::size_t passed_over_ = 0;     // ranks that no member ever has
  std::vector<Opened> opened_;
  std::deque<Link> links_;          // by rank; the own link is for atomics
  Id mirror_;                       // the answering end of the own link
  std::vector<Rank> arrived_;       // newcomers with a connection, not reported yet
  std::vector<Rank> closed_;        // peers with memory to be given back
  std::vector<Rank> ended_;         // ends that were not reported yet
  std::vector<Rank> owed_;          // peers to be told how many of their frames were received
  std::uint64_t next_look_ns_ = 0;  // the next look at events
  std::vector<Spent> spent_;
  std::deque<ibv_wc> held_;  // completions that progress() has not taken yet
};

}  // namespace dunlin::verbs

#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/core/core.hpp"
#include "fabric/mapping/process_registry.hpp"
#include "fabric/stream/frame.hpp"
#include "fabric/stream/inbox.hpp"
#include "fabric/stream/outbox.hpp"
#include "fabric/stream/transport.hpp"
#include "fabric/system.hpp"
#include "fabric/tick_timer.hpp"
#include "ring.hpp"

/// The backend over ordered streams, one file a concern: operations.cpp posts, apply.cpp applies
/// the operations of peers, completions.cpp takes their answers, messages.cpp and regions.cpp carry
/// messages and announcements, watch.cpp sends and checks heartbeats, and sleeps. by_device.cpp
/// performs the operations that devices can do without the peer; newcomers.cpp admits members that
/// come later. docs/cluster.md gives STR-S1 to STR-S8, and STR-J1 to STR-J4.
namespace dunlin::stream {

/// How many operations to one peer may wait for its answer, of each kind: reads, atomics, and
/// others with a remote completion.
inline constexpr std::uint32_t kQueueSlots = 1024;
/// Bytes that reads may have requested from one peer and not received; reads go in pieces.
inline constexpr std::uint64_t kReadWindowBytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kReadPieceBytes = kReadWindowBytes / 4;
/// A source longer than this is not copied by post(), but as buffers become free.
inline constexpr std::uint32_t kMaxCopiedBytes = std::uint32_t{16} << 20;
static_assert(kMaxCopiedBytes >= kMaxRowBytes, "a table's row is sent at once");

/// STR-S7: the proof that the member of rank `from` shows to that of rank `to`.
using Prove = Proof (*)(const std::array<std::byte, kAdmissionKeyBytes>& key, Rank from, Rank to);

/// The parts of which a fabric is made, when all are connected.
struct Attachment {
  std::string kind;
  std::string description;  // the network that was chosen, and why, in a line
  std::string group;
  Rank rank = 0;
  std::vector<std::string> names;  // by rank
  std::uint32_t host_members = 1;  // on this host, as far as is known
  std::uint32_t silence_timeout_ms = 0;
  /// Until this time, a peer that has said nothing yet may be connecting to others.
  std::uint64_t formed_by_ns = 0;
  std::vector<Proof> our_proofs;     // STR-S7, by peer: what we show it,
  std::vector<Proof> their_proofs;   // and what it must show us
  std::vector<Rank> absent = {};     // ranks without a member: there is no stream to them
  std::vector<Rank> elsewhere = {};  // ranks that another backend reaches
  /// True for a part of a backend that gives all regions their memory, and shows this member to
  /// observers.
  bool is_part = false;
  Prove prove = nullptr;  // for newcomers, by an admission's key; null: none can come
  std::unique_ptr<Transport> transport;
};

[[nodiscard]] std::unique_ptr<Fabric> make_stream_fabric(Attachment attachment);

class StreamBackend final : public FabricBackend, private Receiver {
 public:
  explicit StreamBackend(Attachment attachment);
  ~StreamBackend() override;

  Posted post(std::span<const Operation> batch) noexcept;
  std::size_t poll() noexcept;

  // --- as a part of another backend --------------------------------------------------------------
  /// What poll() does between core().begin_poll() and end_poll().
  void take_arrivals() noexcept;
  /// Used instead of map(): the region has this memory.
  void adopt(RegionId id, std::shared_ptr<const mapping::OwnMapping> segment);
  /// Says that another backend reaches a newcomer that has just been admitted.
  void leave_elsewhere(Rank newcomer) noexcept;
  [[nodiscard]] const Properties& properties() const noexcept { return properties_; }

  [[nodiscard]] Refusal send(Rank peer, std::uint32_t channel,
                             std::span<const std::byte> message) noexcept override;
  void forget(const Completion& completion) noexcept override;

  void start() override;
  [[nodiscard]] std::vector<std::byte> endpoint() const override { return transport_->endpoint(); }
  void admit(const Admission& admission) override;
  void close(Rank peer) noexcept override;
  void drain(Rank peer) override;
  [[nodiscard]] std::uint32_t host_members() const noexcept override { return host_members_; }

  [[nodiscard]] std::span<std::byte> map(RegionId id, const LocalRegion& region) override;
  void open(RegionId id, const LocalRegion& region, RemoteRegion& own) override;
  void announce(Rank peer, RegionId id, const LocalRegion& region) override;
  void withdraw(Rank peer, RegionId id, const LocalRegion& region) noexcept override;
  void unmap(RegionId id, const LocalRegion& region) noexcept override;
  void connect(Rank peer, RegionId id, const RemoteRegion& there) noexcept override;
  void disconnect(Rank peer, RegionId id) noexcept override;
  void let_go(Rank peer, RemoteRegion& there) noexcept override;

  [[nodiscard]] std::uint64_t signs_of_life(Rank peer) const noexcept override;
  void beat() noexcept override;
  [[nodiscard]] std::uint64_t longest_beat_interval_ns() const noexcept override;

  [[nodiscard]] std::uint64_t now_ns() const noexcept override;
  void arm() noexcept override;
  void disarm(bool only_rung) noexcept override;
  [[nodiscard]] bool may_wait() noexcept override;
  [[nodiscard]] std::uint64_t next_duty_ns() const noexcept override;

 private:
  using Fault = FabricCore::Fault;

  /// A region of a peer that operations may reach; number 0: none.
  struct Remote {
    std::uint32_t number = 0;
    std::uint64_t bytes = 0;
    Key key = {};  // for our device
  };
  /// The memory of a region of this member.
  struct Memory {
    explicit Memory(const mapping::MappingInfo& segment) : pages(segment) {}
    explicit Memory(std::shared_ptr<const mapping::OwnMapping> segment)
        : pages(std::move(segment)) {}
    mapping::RegionMemory pages;
    std::uint32_t number = 0;  // set once it is announced
    Key key = {};              // set once it is announced, for the peers' devices
  };
  /// A peer's region that is withdrawn, and from which something may still be coming.
  struct LettingGo {
    Rank peer;
    std::uint32_t number;
    std::uint64_t fetches;
  };
  /// A region that was released, and the peers that may still reach it (STR-R2).
  struct Retired {
    struct User {
      Rank peer;
      std::uint64_t started;  // at its release: our device may still send from it
      bool let_go;
    };
    std::unique_ptr<Memory> memory;
    std::vector<User> users;
  };
  /// A put or write that is not in frames yet, and what is left of it.
  struct Writing {
    Completion* completion = nullptr;
    Notify when = Notify::locally;
    bool at_once = true;  // STR-S3: it must not wait for buffers
    bool unfinished = false;
    EntryHead head = {};
    const std::byte* from = nullptr;
    std::size_t left = 0;
  };
  /// A read that is not finished. The bytes that are left to get, but not to ask for, are under
  /// way.
  struct Reading {
    Completion* completion = nullptr;
    std::byte* to = nullptr;  // null: the bytes are thrown away
    std::uint32_t region = 0;
    bool gone = false;
    std::uint64_t ask_at = 0;
    std::uint64_t left_to_ask = 0;
    std::uint64_t get_at = 0;
    std::uint64_t left_to_get = 0;
  };
  struct Atomic {
    Completion* completion = nullptr;
    void* former = nullptr;
  };
  struct Contact {
    Contact(Transport& transport, Rank peer) : outbox(transport, peer) {}

    /// Makes room for answers: from now on there can be some to wait for.
    void open();
    /// Frees the room for answers, of which there are none any more. Messages stay, which a handler
    /// may be taking.
    void give_back() noexcept;

    // Towards the peer:
    Outbox outbox;
    bool greets = false;             // there is a stream, and we have said hello
    bool came_here = false;          // it came while the fabric worked, and is on this host
    bool unsent = false;             // whether it is in unsent_
    std::uint64_t sent_at_beat = 0;  // frames sent at the last heartbeat
    bool owes_bell = false;          // it may sleep through signals by device
    Writing writing;                 // later operations are refused until it is finished
    Ring<Completion*> unplaced;
    Ring<Reading> reads;
    Ring<Atomic> atomics;
    std::uint64_t next_read = 0;  // index in `reads` of the next one to ask for
    std::uint64_t read_bytes_under_way = 0;
    std::uint64_t message_bytes_sent = 0;
    std::uint64_t message_bytes_received = 0;  // as the peer has told

    // From the peer:
    bool greeted = false;
    std::uint64_t frames = 0;
    std::uint64_t bytes_behind = 0;  // bytes behind the frame, for puts that are not applied yet
    std::uint64_t placed = 0;        // applied entries that asked to be counted
    std::uint64_t placed_reported = 0;
    bool placed_gone = false;  // some of those in `placed` not told yet found no region
    Inbox inbox;
    std::uint64_t message_bytes_handled = 0;
    std::uint64_t message_bytes_reported = 0;
    bool dozes = false;
    std::uint32_t notes_awaited = 0;
  };

  // These are in operations.cpp.
  [[nodiscard]] Refusal perform(const Operation& operation) noexcept;
  /// Whether only the device does atomics: it does not see what processors do, so it must do our
  /// own atomics as well.
  [[nodiscard]] bool atomics_by_device_alone() const noexcept {
    return properties_.native_atomics && !properties_.atomics_coherent_with_cpu;
  }
  [[nodiscard]] Refusal perform_here(const Operation& operation) noexcept;
  [[nodiscard]] Refusal send_bytes(Contact& contact, const Remote& target,
                                   const Operation& operation);
  [[nodiscard]] bool copy_into_frames(Outbox& outbox, Writing& writing) const;
  [[nodiscard]] static std::size_t copy_piece(Outbox& outbox, const Writing& writing);
  [[nodiscard]] std::size_t put_behind(Outbox& outbox, const Writing& writing) const;
  [[nodiscard]] bool still_writing(Contact& contact);
  void cut_short(Contact& contact);
  [[nodiscard]] bool is_source(const Memory& of) const noexcept;
  [[nodiscard]] Refusal ask_read(Contact& contact, const Remote& target,
                                 const Operation& operation);
  [[nodiscard]] Refusal ask_atomic(Contact& contact, const Remote& target,
                                   const Operation& operation);
  void ask_for_reads(Contact& contact);

  // These are in by_device.cpp.
  enum class Way : std::uint8_t { device, frames, later };
  [[nodiscard]] static bool waits_for_answers(const Contact& contact) noexcept;
  [[nodiscard]] Way way_of(const Contact& contact, const Operation& operation) const noexcept;
  [[nodiscard]] Refusal start_by_device(Contact& contact, const Remote& target,
                                        const Operation& operation) noexcept;
  void take_finished(Rank from, Completion& completion, bool well) noexcept override;
  void ring_device(Rank peer) noexcept;
  void retire(std::unique_ptr<Memory> memory, const LocalRegion& region);
  void free_retired() noexcept;
  void check_retired(const std::string& name) const;
  void let_go_of_theirs() noexcept;
  [[nodiscard]] Fault take_let_go(Rank from, const EntryHead& head);
  void publish_dozing(bool dozes) noexcept;
  void say_dozing(Rank peer, bool dozes) noexcept;
  void doze() noexcept;
  void stay_awake() noexcept;
  [[nodiscard]] Fault take_dozing(Rank from, Contact& contact, const EntryHead& head);
  [[nodiscard]] Fault take_noted(Contact& contact);
  void forget_device_of(Rank peer) noexcept;

  // These are in apply.cpp.
  void take_frame(Rank from, std::span<const std::byte> frame) override;
  [[nodiscard]] bool find_places(Rank from, std::span<const std::byte> frame,
                                 std::vector<Place>& places) override;
  [[nodiscard]] Fault find_place(Contact& contact, const Entry& entry,
                                 std::vector<Place>& places) const;
  [[nodiscard]] Fault apply(Rank from, Contact& contact, const Entry& entry);
  [[nodiscard]] Fault greet(Rank from, Contact& contact, const Entry& entry);
  [[nodiscard]] Fault reach(const Entry& entry, std::size_t bytes, std::byte*& at) const noexcept;
  [[nodiscard]] Fault count_answer(Contact& contact, std::size_t bytes = sizeof(EntryHead));
  [[nodiscard]] static Fault check_answers(const Contact& contact) noexcept;
  [[nodiscard]] Fault apply_bytes(Contact& contact, const Entry& entry);
  [[nodiscard]] Fault apply_read(Contact& contact, const Entry& entry);
  [[nodiscard]] Fault apply_atomic(Contact& contact, const Entry& entry);
  void count_placed(Contact& contact, bool gone);
  void report_placed(Contact& contact);
  [[nodiscard]] Fault answer(Contact& contact, const EntryHead& head, const std::byte* from);

  // These are in completions.cpp.
  [[nodiscard]] Fault take_bytes(Rank from, Contact& contact, const Entry& entry);
  [[nodiscard]] Fault take_former(Rank from, Contact& contact, const EntryHead& head);
  [[nodiscard]] Fault take_placed(Rank from, Contact& contact, const EntryHead& head);
  void finish_one(Completion* completion, Rank peer, bool well) noexcept;
  void fail_all(Contact& contact, Rank peer) noexcept;

  // These are in messages.cpp.
  [[nodiscard]] Fault take_message(Rank from, Contact& contact, const Entry& entry);
  [[nodiscard]] Fault take_received_report(Contact& contact, const EntryHead& head);
  void report_received(Contact& contact);

  // These are in regions.cpp.
  [[nodiscard]] Fault take_announcement(Rank from, const Entry& entry);
  [[nodiscard]] const Remote& remote(Rank peer, RegionId id) const noexcept {
    static constexpr Remote kNone{};
    const std::unique_ptr<Remote[]>& of_peer = remotes_[peer];
    return of_peer == nullptr ? kNone : of_peer[id.index];
  }

  // These are in newcomers.cpp.
  void greet_first(Rank peer);
  void take_link(Rank peer) override;

  // These are in stream_backend.cpp.
  void send_hello(Rank peer, const Proof& proof, std::uint32_t silence_timeout_ms);
  void send_entry(Rank peer, const EntryHead& head);
  void send_rest() noexcept;
  void mark_unsent(Rank peer) noexcept;
  void send_if_idle(Rank peer) noexcept;
  void send_all() noexcept;

  // These are in watch.cpp.
  void take_end(Rank from, std::string why) override;
  void look_at_clock(std::uint64_t ticks) noexcept;

  Rank rank_;
  std::vector<Proof> our_proofs_;  // by peer; kept until they are shown
  Prove prove_;
  std::uint32_t silence_timeout_ms_;
  std::uint32_t host_members_;
  std::vector<Rank> elsewhere_;  // among founding members
  Descriptor arrivals_;          // the transport's own epoll set, if this is a part
  std::unique_ptr<Transport> transport_;
  DeviceOperations* device_;  // the transport's; null: none
  Properties properties_;
  bool carries_behind_;
  bool awaits_answers_ = false;  // whether what goes by frames awaits an answer (STR-B1)

  std::unique_ptr<mapping::ProcessRegistry> registry_;  // null if this is a part
  std::uint32_t members_;
  // By peer and region; null for a peer that was never connected, or has gone (STR-J4).
  std::vector<std::unique_ptr<Remote[]>> remotes_;
  std::vector<Contact> contacts_;  // by rank
  std::vector<Rank> unsent_;       // peers for which there is something to send
  bool sent_to_self_ = false;
  std::vector<std::unique_ptr<Memory>> memories_;  // by region
  std::vector<Retired> retired_;
  std::vector<LettingGo> letting_go_;
  std::vector<Proof> their_proofs_;

  std::uint64_t formed_by_ns_;
  TickTimer look_timer_;  // until the next look at the clock

  bool dozing_ = false;
  std::uint32_t unnoted_ = 0;  // peers that have not noted yet that this member may sleep
  std::uint64_t last_doze_ns_ = 0;
};

}  // namespace dunlin::stream

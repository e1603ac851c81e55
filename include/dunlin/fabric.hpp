#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>

/// A Fabric is one process's attachment to a group of nodes that write and read each other's
/// memory. It has no thread of its own: one thread at a time calls it, and all progress happens in
/// poll().
///
///     auto fabric = dunlin::join({.group = "rack7", .members = 2});
///     dunlin::Region box = fabric->allocate({.name = "box", .bytes = 64});
///     fabric->announce(box);
///     while (!fabric->connected(1, box.id())) fabric->poll();
///     std::uint64_t value = 42;
///     dunlin::Completion done;
///     auto posted = fabric->post(dunlin::write(1, box.id(), 0, &value, 8).notify(done));
///     while (!done.finished()) fabric->poll();
///
/// Every backend keeps these promises (docs/fabric.md gives the proofs; tests/fabric/conformance
/// holds all backends to them):
///  FAB-F1  Put, then signal. A `write`, an atomic or a `send` is a signal: a reader at the peer
///      that sees it also sees every operation posted to that peer before it. Signals to one peer
///      arrive in order. `put`s have no order among themselves: no reader may look at their bytes
///      before a signal.
///  FAB-F2  An aligned entry of 1, 2, 4 or 8 bytes is never torn. Each 64-byte line of a `write` is
///      placed at once or in ascending order of its words, each line of a `read` is fetched at once
///      or in descending order: so stamped entries (table/cell.hpp) of any size are never torn.
///  FAB-F3  A failed peer is announced by exactly one `peer_failed` event. Operations to it
///      complete with an error; no operation hangs, or reaches memory that has another owner by
///      now.
///  FAB-F4  A completion `locally` means that the source may be reused; `remotely` that the bytes
///      are placed. The result of a `read` or an atomic is there when its Completion is finished.
///  FAB-F5  poll() neither throws nor blocks, and calls handlers only from within itself.
/// Members can come while it works (FAB-G1 to FAB-G4 of docs/fabric.md): admit() lets them in, and
/// a newcomer gets in by a Rendezvous.
namespace dunlin {

using Rank = std::uint32_t;

/// The abilities of a fabric. Layers ask for them here, and assume none.
struct Properties {
  bool passive_target;     // operations land without the target's CPU
  bool ordered_placement;  // polling memory for a later write proves an earlier one
  bool native_atomics;     // atomics are not emulated by messages
  bool
      atomics_coherent_with_cpu;  // a CPU atomic and a fabric atomic on one word exclude each other
  std::uint32_t max_inline_bytes;  // a source of up to this size may be reused at once
  std::uint32_t max_peers;
  std::uint32_t queue_slots;     // operations in flight per peer before post() says queue_full
  bool reads_are_loads = false;  // post() itself does a read, on this processor; see prefetch()
  bool expel_fences = true;  // an expelled peer cannot change our memory any more; else see fence()
};

/// Why a peer is expelled. This decides how much time it has to give up this member's memory by
/// itself (Fabric::fence).
enum class Parting : std::uint8_t {
  failed,  // it is dead, or counts as failed
  left     // it leaves, and is alive
};

/// Whether a failed peer can still change memory that it has mapped.
enum class Fenced : std::uint8_t {
  yes,      // it cannot, and never will again
  not_yet,  // ask again: it is alive and may give up our memory by itself, or it is being killed
  never     // this process may not kill it, or cannot know whether it has ended
};

/// Names an allocated region in this process; the fabric knows which memory of a peer goes with it.
struct RegionId {
  std::uint32_t index = UINT32_MAX;
  friend bool operator==(RegionId, RegionId) = default;
};

/// Counts the operations posted with it until they are finished. It must outlive them (see
/// Fabric::abandon), and may be reused once finished.
class Completion {
 public:
  Completion() = default;
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  [[nodiscard]] bool finished() const noexcept { return pending_ == 0; }
  [[nodiscard]] bool failed() const noexcept { return failed_ != 0; }
  [[nodiscard]] std::uint32_t failures() const noexcept { return failed_; }
  /// The first peer to which an operation failed; meaningful if failed().
  [[nodiscard]] Rank failed_peer() const noexcept { return failed_peer_; }
  /// Forgets earlier failures; requires finished().
  void reset() noexcept { failed_ = 0; }

 private:
  friend class FabricBackend;  // it changes the counts
  std::uint32_t pending_ = 0;
  std::uint32_t failed_ = 0;
  Rank failed_peer_ = 0;
};

enum class OperationKind : std::uint8_t { put, write, read, compare_swap, fetch_add };
enum class Notify : std::uint8_t { locally, remotely };

/// A one-sided operation, made by the functions below. `local` is the source of a put or write, and
/// the destination of a read or atomic (there, the former value of the word; null: not wanted).
struct Operation {
  OperationKind kind;
  Notify when = Notify::locally;
  bool more = false;  // see more_follows()
  Rank peer;
  RegionId region;
  std::uint64_t offset;  // in the peer's region; 8-byte aligned for atomics
  void* local;
  std::size_t bytes;
  std::uint64_t operand = 0;  // fetch_add: the addend; compare_swap: the expected value
  std::uint64_t desired = 0;  // compare_swap: the new value
  Completion* completion = nullptr;

  /// Counts the operation in a completion; without it, the operation is unsignalled.
  Operation notify(Completion& c, Notify how = Notify::locally) const noexcept {
    Operation with = *this;
    with.completion = &c;
    with.when = how;
    return with;
  }
  /// A hint, as MSG_MORE is to a socket: the caller posts more to this peer before its next poll(),
  /// so a network may send both as one. In return, the source of a put must keep its bytes until
  /// that post(), or poll(), has returned.
  Operation more_follows() const noexcept {
    Operation with = *this;
    with.more = true;
    return with;
  }
};

/// Writes bytes that no process reads before a later signal; the cheapest way to move many bytes.
[[nodiscard]] inline Operation put(Rank peer, RegionId region, std::uint64_t offset,
                                   const void* from, std::size_t bytes) noexcept {
  return {.kind = OperationKind::put,
          .peer = peer,
          .region = region,
          .offset = offset,
          .local = const_cast<void*>(from),
          .bytes = bytes};
}
/// Writes words that the peer may be watching; a signal. `from` and `offset` must agree modulo 8,
/// also for fewer than 8 bytes: each byte has the same position in its word here and at the peer.
[[nodiscard]] inline Operation write(Rank peer, RegionId region, std::uint64_t offset,
                                     const void* from, std::size_t bytes) noexcept {
  return {.kind = OperationKind::write,
          .peer = peer,
          .region = region,
          .offset = offset,
          .local = const_cast<void*>(from),
          .bytes = bytes};
}
/// Reads words that the peer may be changing. `to` and `offset` must agree modulo 8.
[[nodiscard]] inline Operation read(Rank peer, RegionId region, std::uint64_t offset, void* to,
                                    std::size_t bytes) noexcept {
  return {.kind = OperationKind::read,
          .peer = peer,
          .region = region,
          .offset = offset,
          .local = to,
          .bytes = bytes};
}
[[nodiscard]] inline Operation fetch_add(Rank peer, RegionId region, std::uint64_t offset,
                                         std::uint64_t add, std::uint64_t* before) noexcept {
  return {.kind = OperationKind::fetch_add,
          .peer = peer,
          .region = region,
          .offset = offset,
          .local = before,
          .bytes = 8,
          .operand = add};
}
[[nodiscard]] inline Operation compare_swap(Rank peer, RegionId region, std::uint64_t offset,
                                            std::uint64_t expected, std::uint64_t desired,
                                            std::uint64_t* before) noexcept {
  return {.kind = OperationKind::compare_swap,
          .peer = peer,
          .region = region,
          .offset = offset,
          .local = before,
          .bytes = 8,
          .operand = expected,
          .desired = desired};
}

enum class Refusal : std::uint8_t {
  none,            // all operations were accepted
  queue_full,      // back-pressure: poll, then post the rest
  not_connected,   // the peer has not announced this region yet, or has withdrawn it
  out_of_bounds,   // past the end of the peer's region
  misaligned,      // an atomic or its result off 8 bytes, or source and target unlike modulo 8
  too_large,       // a message over kMaxMessageBytes, or a channel over kMaxChannels
  unknown_peer,    // no such rank
  unknown_region,  // not allocated on this fabric, or released
  forked           // this process is a child of the member's: is_forked()
};
[[nodiscard]] std::string_view describe(Refusal refusal) noexcept;

/// How much of a batch was taken: the first `accepted` operations; the next one was refused.
/// (An operation to a *failed* peer is accepted, and completes with an error.)
struct [[nodiscard]] Posted {
  std::size_t accepted = 0;
  Refusal refusal = Refusal::none;
  [[nodiscard]] bool all() const noexcept { return refusal == Refusal::none; }
};

struct Event {
  enum class Kind : std::uint8_t {
    peer_linked,       // an admitted peer has come: messages to it are possible
    peer_failed,       // once for a peer; `text` says how the failure was noticed
    peer_killed,       // once for a peer: fence() has killed its process; `text` says which process
    region_connected,  // the peer has announced `region`: operations to it are possible
    region_refused,    // the peer announced another layout; `text` names both sides
    region_withdrawn   // the peer has released `region`
  };
  Kind kind;
  Rank peer;
  RegionId region;  // only for events about a region
  std::string_view text;
  /// peer_failed: the silence by which the failure was noticed (0: it was noticed otherwise).
  /// peer_killed: the time from the expulsion until the kill.
  std::uint64_t after_ns = 0;
};

/// Describes a region to allocate. Regions of the same name and generation in different processes
/// belong together.
struct RegionSpec {
  std::string name = {};          // at most kMaxRegionNameBytes
  std::size_t bytes = 0;          // zeroed; a peer's region may have another size
  std::uint64_t generation = 0;   // 0: counts this process's allocations of the name
  std::uint64_t layout_hash = 0;  // must equal the peers', or the region is refused
  std::string layout_text = {};   // the layout as text, for the refusal's message and for tools
};

/// The admission of newcomers into a fabric that runs. All members, and the newcomers, get equal
/// admissions: a group's leader decides.
struct Admission {
  struct Newcomer {
    std::string name;                 // may be empty
    std::vector<std::byte> endpoint;  // PendingEntry::endpoint()
  };
  /// The rank of the first newcomer; the others follow. At least size(), so that no rank is given
  /// twice: ranks that are passed over never have a member.
  Rank first = 0;
  std::vector<Newcomer> newcomers = {};
  /// The key by which a newcomer and a member prove to each other that they belong to this
  /// admission. It is random, new for each admission, and sent only over connections that no other
  /// process can read.
  std::array<std::byte, kAdmissionKeyBytes> key = {};
};

class Fabric;
class FabricCore;

/// Registered memory. Its destruction releases the memory, and tells the peers. Movable. Must not
/// outlive its fabric.
class Region {
 public:
  Region() = default;
  Region(Region&& other) noexcept { *this = std::move(other); }
  Region& operator=(Region&& other) noexcept;
  ~Region();

  [[nodiscard]] RegionId id() const noexcept { return id_; }
  /// This process's part of the region: 64-byte aligned; every peer can write it remotely.
  [[nodiscard]] std::span<std::byte> memory() const noexcept { return memory_; }

 private:
  friend class Fabric;
  friend class FabricCore;
  Region(Fabric& fabric, RegionId id, std::span<std::byte> memory) noexcept
      : fabric_(&fabric), id_(id), memory_(memory) {}
  Fabric* fabric_ = nullptr;
  RegionId id_;
  std::span<std::byte> memory_;
};

/// A subscription, which ends at destruction. Must not outlive its fabric.
class Subscription {
 public:
  Subscription() = default;
  Subscription(Subscription&& other) noexcept { *this = std::move(other); }
  Subscription& operator=(Subscription&& other) noexcept;
  ~Subscription();

 private:
  friend class Fabric;
  Subscription(Fabric& fabric, std::uint64_t id) noexcept : fabric_(&fabric), id_(id) {}
  Fabric* fabric_ = nullptr;
  std::uint64_t id_ = 0;
};

/// The costs of computing on a simulated node, in nanoseconds; real nodes have none.
struct CpuCosts {
  double poll_ns;       // one round of poll()
  double predicate_ns;  // evaluating a predicate, besides its entries
  double entry_ns;      // each entry that a predicate reads
  double trigger_ns;    // calling a trigger, besides what the trigger does
};

class FabricBackend;

class Fabric {
 public:
  using EventHandler = std::function<void(const Event&)>;
  using MessageHandler = std::function<void(Rank from, std::span<const std::byte> message)>;

  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  /// Leaves the group, and tells the peers.
  ~Fabric();

  // --- members -----------------------------------------------------------------------------------
  [[nodiscard]] Rank rank() const noexcept { return rank_; }
  /// The number of ranks, including those of members that have left, or are still to come. It grows
  /// by admit(), up to kMaxRanks.
  [[nodiscard]] std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(peers_.size());
  }
  [[nodiscard]] const std::string& group() const noexcept { return group_; }
  [[nodiscard]] const std::string& member_name(Rank r) const { return peers_.at(r).name; }
  [[nodiscard]] const Properties& properties() const noexcept { return properties_; }
  /// The backend's name, for people: "shm", "tcp", "auto" (mixed), "ofi", "verbs", "sim". Layers
  /// ask properties() instead.
  [[nodiscard]] const std::string& kind() const noexcept { return kind_; }
  /// The network that the backend chose, and why, in one line.
  [[nodiscard]] const std::string& description() const noexcept { return description_; }
  [[nodiscard]] bool failed(Rank r) const noexcept { return r < peers_.size() && peers_[r].failed; }
  /// A text that says how the peer's failure was noticed; empty while the peer is alive.
  [[nodiscard]] const std::string& failure_text(Rank r) const { return peers_.at(r).failure; }
  /// Whether the peer has come: true for all members that the fabric began with, and for an
  /// admitted one after its event `peer_linked`.
  [[nodiscard]] bool linked(Rank r) const noexcept { return r < peers_.size() && peers_[r].linked; }
  /// Whether this process is a child that the member has forked. Such a process is no member: its
  /// operations are refused, poll() does nothing, and what it writes to shared memory reaches no
  /// peer.
  [[nodiscard]] bool is_forked() const noexcept { return forked_; }
  /// Makes this peer count as failed here, with `why` as the reason: from now on, this member sends
  /// it nothing and takes nothing from it, and operations posted to it fail. The event comes in the
  /// next poll(). The connection is closed, so that the peer learns of it, too; but where memory is
  /// shared, the peer can still write into regions that it has mapped. Does nothing for the own
  /// rank, nor for a peer that has failed already. Throws Error if there is no such rank.
  void expel(Rank peer, std::string why, Parting how = Parting::failed);
  /// Makes sure that a failed peer changes our memory no more. With properties().expel_fences,
  /// expel() has done so. Where memory is shared, this kills the peer's process (SIGKILL, through a
  /// descriptor of that very process), unless the peer has left the fabric regularly, or gives up
  /// this member in its next poll(): within 10 s if it was expelled as `left`, else within 0.1 s.
  /// The event `peer_killed` comes in the next poll().
  [[nodiscard]] Fenced fence(Rank peer) noexcept;

  // --- members that come while it works (set-up; may throw Error) --------------------------------
  /// The bytes by which a newcomer reaches this member; may be empty.
  [[nodiscard]] std::vector<std::byte> endpoint() const;
  /// Lets members in. size() grows at once. Each newcomer is linked when it has come, and can fail
  /// from then on; one that does not come can be expelled. A handler must not call this.
  void admit(const Admission& admission);

  // --- memory (set-up; may throw Error) ----------------------------------------------------------
  /// Allocate zeroed memory. Peers cannot reach it before announce().
  [[nodiscard]] Region allocate(const RegionSpec& spec);
  /// Lets all peers reach the region, also those that come later. Call it once its first content is
  /// in place. Later calls for the same region do nothing.
  void announce(const Region& region);
  /// Lets only these peers reach the region: no other peer can, nor one that comes later.
  void announce(const Region& region, std::span<const Rank> to);
  /// Memory that only observers of this process see (`dunlin top`), read-only; never announced.
  [[nodiscard]] Region publish(const RegionSpec& spec);
  /// Whether this process has a region of that name, in any generation.
  [[nodiscard]] bool has_region(std::string_view name) const noexcept;
  /// The region's generation: from its spec, or else the count of allocations of its name.
  [[nodiscard]] std::uint64_t generation(const Region& region) const noexcept;
  /// Whether operations on the peer's region of this name and generation are possible.
  [[nodiscard]] bool connected(Rank peer, RegionId region) const noexcept {
    return peer < peers_.size() && region.index < peers_[peer].connected.size() &&
           peers_[peer].connected[region.index];
  }

  // --- operations (data path; never throw) -------------------------------------------------------
  /// Posts a batch in order, with one doorbell. The caller must leave the sources as they are until
  /// local completion, unless they are at most properties().max_inline_bytes long.
  Posted post(std::span<const Operation> batch) noexcept { return post_(*backend_, batch); }
  Posted post(const Operation& one) noexcept { return post(std::span(&one, 1)); }
  /// Hints that this memory of the peer will be read soon. Where reads are loads
  /// (properties().reads_are_loads), this begins to bring the memory into the cache, so that the
  /// misses of many reads overlap; elsewhere, or if there is no such memory, it does nothing.
  void prefetch(Rank peer, RegionId region, std::uint64_t offset, std::size_t bytes) noexcept;
  /// The memory of the peer's region, if it is mapped in this process (as on shm) and operations on
  /// it are possible; else nothing. The functions of <dunlin/fabric/memory.hpp> then do at once
  /// what operations would. Valid as long as disconnections() is the same; ring() comes behind
  /// changes.
  [[nodiscard]] std::span<std::byte> reach(Rank peer, RegionId region) noexcept;
  /// How often a region of some peer has been disconnected.
  [[nodiscard]] std::uint64_t disconnections() const noexcept { return disconnections_; }
  /// Wakes the peer if it sleeps: what post() does behind operations that change its memory.
  void ring(Rank peer) noexcept;
  /// A small message to the peer's handler of `channel`, run inside its poll(); a signal (FAB-F1).
  [[nodiscard]] Refusal send(Rank peer, std::uint32_t channel,
                             std::span<const std::byte> message) noexcept;
  /// Make progress; returns how many messages, completions and events were handled. Returns 0 and
  /// does nothing when a handler calls it.
  std::size_t poll() noexcept { return poll_(*backend_); }
  /// Whether a handler is running: then poll() does nothing, and waiting would never end.
  [[nodiscard]] bool in_handler() const noexcept;
  /// Forgets that operations were posted with this completion: the caller may free it and their
  /// local memory at once, and results are thrown away.
  void abandon(Completion& completion) noexcept;

  // --- handlers, called inside poll(); they may post, send, subscribe and unsubscribe ------------
  // A handler must not throw: poll() lets nothing out (FAB-F5), so that would end the program.
  [[nodiscard]] Subscription subscribe(EventHandler handler);
  /// Receive the messages of a channel; replaces an earlier handler. Messages that arrive on a
  /// channel without a handler wait, and hold back those behind them from the same peer.
  void receive(std::uint32_t channel, MessageHandler handler);
  /// Drops the messages of a channel from now on, until another receive() of it.
  void ignore(std::uint32_t channel);
  /// Whether a channel has a handler, and so is in use; false for a channel that is ignored.
  [[nodiscard]] bool receives(std::uint32_t channel) const noexcept;

  // --- time and waiting --------------------------------------------------------------------------
  /// Nanoseconds since some fixed moment: the only clock that a layer may read.
  [[nodiscard]] std::uint64_t now_ns() const noexcept;
  /// The time when poll() last read the clock of now_ns(), which it does now and then; costs a
  /// load.
  [[nodiscard]] std::uint64_t recent_ns() const noexcept { return recent_ns_; }
  /// The time when the fabric last woke up. A simulated node sleeps between any two polls.
  [[nodiscard]] std::uint64_t awake_since_ns() const noexcept;
  /// Runners call, in this order: prepare_sleep(); poll all layers once more; then sleep() if that
  /// found nothing, or cancel_sleep(). After prepare_sleep() a peer's operation rings our doorbell,
  /// so nothing that arrives in between is slept through. On a simulated node they do nothing.
  void prepare_sleep() noexcept;
  void cancel_sleep() noexcept;
  /// Returns when a peer rings, after timeout_ns, or for a duty of the fabric itself (its
  /// heartbeat).
  void sleep(std::uint64_t timeout_ns) noexcept;
  /// Makes a sleep() of this fabric return, or the next one if none is under way. Any thread may
  /// call this (to stop a runner, say), and no other member function.
  void wake() noexcept;
  /// Says "poll me no later than this": bounds the next sleep(), and makes a simulated node poll
  /// then. A poll at or after the earliest of these times forgets all of them, so a layer calls
  /// this in each poll with the time that it waits for.
  void wake_at(std::uint64_t time_ns) noexcept;
  /// A descriptor for a foreign event loop, in place of sleep(). It is readable when poll() has
  /// something to do, which includes the fabric's own duties, wake_at() and wake(); -1: there is
  /// none. Works between prepare_sleep() (and a last poll, as above) and cancel_sleep(); then call
  /// poll().
  [[nodiscard]] int wait_descriptor() const noexcept;
  /// How many members of this host share the processors with us. Runners spin less if there are
  /// fewer processors than members.
  [[nodiscard]] std::uint32_t host_members() const noexcept;

  // --- simulated time ----------------------------------------------------------------------------
  [[nodiscard]] const CpuCosts* cpu_costs() const noexcept { return cpu_costs_; }
  /// Says "the work just done takes this long": the clock of a simulated node moves on; a real node
  /// ignores it.
  void spend(double ns) noexcept;

 private:
  // src/fabric/core/core.hpp: the code that all backends share. It fills in the members below.
  friend class FabricCore;
  friend class Region;
  friend class Subscription;
  struct Peer {
    std::string name;
    bool linked = false;
    bool failed = false;
    std::string failure;
    std::vector<bool> connected;  // by region, up to the last one that ever was
    void connect(RegionId region) {
      if (region.index >= connected.size()) connected.resize(region.index + 1);
      connected[region.index] = true;
    }
  };
  Fabric();

  // These cost one indirect call for a batch, and one for a poll.
  FabricBackend* backend_ = nullptr;
  Posted (*post_)(FabricBackend&, std::span<const Operation>) noexcept = nullptr;
  std::size_t (*poll_)(FabricBackend&) noexcept = nullptr;

  bool forked_ = false;
  Rank rank_ = 0;
  std::uint64_t recent_ns_ = 0;
  std::vector<Peer> peers_;
  const CpuCosts* cpu_costs_ = nullptr;
  Properties properties_{};
  std::string kind_;
  std::string description_;
  std::string group_;
  std::unique_ptr<FabricCore> core_;
  std::uint64_t disconnections_ = 0;
};

}  // namespace dunlin

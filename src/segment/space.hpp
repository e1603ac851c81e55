#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dunlin/remote/pool.hpp>
#include <dunlin/segment.hpp>

#include "remote/control_channel.hpp"
#include "segment/counters.hpp"
#include "segment/port.hpp"

namespace dunlin {

inline constexpr Rank kNobody = UINT32_MAX;
/// The status of an attempt that must begin anew, at another place.
inline constexpr auto kMoved = remote::Status::conflict;

/// A segment's block in its member's pool: a line with the words of its coherence, then the bytes.
inline constexpr std::uint64_t kLockWord = 0;
inline constexpr std::uint64_t kVersionWord = 8;  // twice the version; odd while a put goes on
inline constexpr std::uint64_t kDataOffset = kCacheLineBytes;

/// The block's size; under delta the bytes are there once for each version that is kept, and once
/// more for the next.
[[nodiscard]] constexpr std::uint64_t block_bytes(Coherence coherence, std::uint64_t bytes,
                                                  std::uint32_t versions) noexcept {
  if (coherence != Coherence::delta) return kDataOffset + bytes;
  return kDataOffset + (std::uint64_t{versions} + 1) * round_up(bytes, kCacheLineBytes);
}
static_assert(Key::of(1, 3, 2).value == 0x0000000200003001, "docs/formats/segment.md");

/// The messages of members about segments, besides gets and puts.
struct SegmentMessage {
  enum class Type : std::uint32_t {
    allocate,     // to the home; bytes, coherence, stale_ns, name
    release,      // to the home
    look_up,      // to the home: asks for the segment of this key
    find,         // to the directory of the name
    bind,         // to the directory: this name means this key
    unbind,       // to the directory
    answer,       // to the member that asked, with the id of the request
    allocated,    // the answer to `allocate`
    invalidate,   // to members that know the segment: drop it
    invalidated,  // to the home: dropped, and nothing is under way there
    // second copies (copies.cpp); the primary is the member whose copy readers use
    make_backup,       // to the member that is to hold the second copy
    backup_made,       // the answer, with `backup_offset`
    pause,             // to all: begin no put, a second copy is being made; who was a member then
    paused,            // to the primary: no put is under way here
    backup_complete,   // to the backup: it has what the primary has
    backup_completed,  // its answer
    resume,            // to all: this is where the segment is, and puts go on
    drop_backup,       // to the backup: its block is free
    no_copy,           // to all: the primary died before its second copy was complete
  };
  Type type;
  remote::Status status = remote::Status::ok;
  Coherence coherence = Coherence::null;
  std::uint16_t name_bytes = 0;
  std::uint64_t id = 0;
  std::uint64_t key = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stale_ns = 0;
  std::uint32_t versions = 0;
  std::uint8_t copies = 1;
  bool is_paused = false;
  Rank backup = UINT32_MAX;
  std::uint64_t backup_offset = 0;
  Rank primary = UINT32_MAX;  // of a second copy that was looked up
  std::array<char, kMaxSegmentNameBytes> name{};

  void set_name(const std::string& text) noexcept {
    name_bytes = static_cast<std::uint16_t>(std::min(text.size(), name.size()));
    std::copy_n(text.begin(), name_bytes, name.begin());
  }
  [[nodiscard]] std::string name_text() const {
    return {name.data(), std::min<std::size_t>(name_bytes, name.size())};
  }
};
static_assert(sizeof(SegmentMessage) <= kMaxMessageBytes);

/// A segment that this member holds: as its home, or since its home has died.
struct HeldSegment {
  std::uint32_t generation = 0;
  bool taken = false;
  bool closing = false;
  Coherence coherence = Coherence::null;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stale_ns = 0;
  std::uint32_t versions = 0;
  std::uint8_t copies = 1;
  Rank backup = kNobody;  // the member with the second copy, once that is complete
  std::uint64_t backup_offset = 0;
  std::string name = {};
  std::vector<Rank> known_by =
      {};  // while closing: members that have not dropped it yet; all, with two copies
  Rank releaser = 0;
  std::uint64_t release_id = 0;

  [[nodiscard]] std::uint64_t block() const noexcept {
    return block_bytes(coherence, bytes, versions);
  }
};

/// A second copy that this member holds.
struct BackupCopy {
  SegmentMessage description;
  Rank primary = 0;
  std::uint64_t offset = 0;
  bool complete = false;  // it has what the primary has
};

/// A second copy that this member, the primary, is having made.
struct Copying {
  Rank backup = kNobody;
  std::uint64_t backup_offset = 0;
  bool pauses = false;            // puts
  std::vector<Rank> waiting_for;  // members where a put may be under way
  bool completed = false;
};

/// The member that has asked for a segment with two copies, while the first one is made.
struct Allocating {
  Rank asker = kNobody;
  std::uint64_t id = 0;
};

struct Transfer;

/// The knowledge of this process about a slot of some member.
struct KnownSegment {
  Key key;                     // of generation 0: nothing
  std::uint32_t released = 0;  // this generation and those before were released
  bool closing = false;        // the home wants it dropped
  bool lock_odd = false;       // under our lock, and a put was, or may have been, cut off
  bool unsettled = false;      // under our lock, a put was given up and may be under way
  bool paused = false;         // no put begins: a second copy is being made
  bool unsure = false;         // the primary died meanwhile: the new one has yet to say so
  bool moved = false;          // to another primary; until the locks are repaired
  bool lost = false;           // no member has it any more
  Coherence coherence = Coherence::null;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t block_end = 0;           // of the only copy
  std::byte* block = nullptr;            // the only copy, mapped here
  std::uint64_t mapped_in = UINT64_MAX;  // it is valid as long as this is Fabric::disconnections()
  std::uint64_t stale_ns = 0;
  std::uint32_t versions = 0;
  std::uint8_t copies = 1;
  Rank primary = 0;
  Rank backup = kNobody;
  std::uint64_t backup_offset = 0;
  std::uint64_t placement = 0;     // how often one of these has changed
  std::uint32_t users = 0;         // operations under way
  remote::LockNode lock;           // by lock()
  std::uint64_t lock_owner = 0;    // the owner: Request::owner
  Transfer* turn = nullptr;        // the get or put whose turn it is under the lock
  std::uint64_t seen_version = 0;  // delta: the latest that was read
  std::uint64_t own_version = 0;   // that this process put last: no older copy is taken
  std::vector<std::byte> merged;   // delta: a version with a range put into it
  // temporal, or left by get_no_older(): the copy of the whole
  std::vector<std::byte> copy;
  std::uint64_t copy_version = 0;
  std::uint64_t copied_at_ns = 0;

  [[nodiscard]] bool versioned() const noexcept {
    return coherence == Coherence::write || coherence == Coherence::version ||
           coherence == Coherence::temporal || is_delta();
  }
  [[nodiscard]] bool is_locked_by(std::uint64_t owner) const noexcept {
    return lock.valid() && lock_owner == owner;
  }
  [[nodiscard]] bool is_delta() const noexcept { return coherence == Coherence::delta; }
  /// Whether no call of this process has its lock or its turn, and calls may begin.
  [[nodiscard]] bool is_plain() const noexcept {
    return !closing && !lock.valid() && turn == nullptr;
  }
  [[nodiscard]] bool has(std::uint64_t at, std::uint64_t size) const noexcept {
    return size != 0 && size <= bytes && at <= bytes - size;
  }
  [[nodiscard]] static bool lie_alike(const std::byte* memory, std::uint64_t at) noexcept {
    return (reinterpret_cast<std::uintptr_t>(memory) ^ at) % kWordBytes == 0;
  }
  /// Whether a get or put of these bytes at this offset can be.
  [[nodiscard]] bool fits(std::span<const std::byte> memory, std::uint64_t at) const noexcept {
    return has(at, memory.size()) && lie_alike(memory.data(), at);
  }
  /// Where that version's bytes begin, in a block at that offset.
  [[nodiscard]] std::uint64_t data_at(std::uint64_t begin, std::uint64_t version) const noexcept {
    const std::uint64_t slot = is_delta() ? version % (std::uint64_t{versions} + 1) : 0;
    return begin + kDataOffset + slot * round_up(bytes, kCacheLineBytes);
  }
  [[nodiscard]] bool puts_lock() const noexcept {
    return versioned() || coherence == Coherence::strict;
  }
};

/// Why a get or put cannot be; `ok`: it can.
[[nodiscard]] inline remote::Status fault_of(const SegmentRequest& request,
                                             const KnownSegment& segment) noexcept {
  if (!segment.has(request.offset, request.bytes)) return remote::Status::out_of_range;
  if (!KnownSegment::lie_alike(request.memory, request.offset)) return remote::Status::misaligned;
  const bool has_versions = segment.coherence == Coherence::version ||
                            segment.coherence == Coherence::temporal || segment.is_delta();
  const bool keeps_version = request.call == SegmentCall::put ? has_versions : segment.is_delta();
  const bool is_allowed = (request.known_version == UINT64_MAX || has_versions) &&
                          (request.wanted_version == UINT64_MAX || keeps_version) &&
                          (request.max_age_ns == UINT64_MAX || segment.versioned());
  return is_allowed ? remote::Status::ok : remote::Status::not_allowed;
}

struct SegmentState;

/// How a call ended that needed no protocol; in registers.
struct AtOnce {
  std::uint64_t version = 0;
  remote::Status status = remote::Status::under_way;  // `under_way`: it has yet to begin

  [[nodiscard]] bool ended() const noexcept { return status != remote::Status::under_way; }
};

/// A get, put or lock under way, in the frame of its protocol: what it holds, it gives back in the
/// end, however that comes.
struct Transfer {
  Transfer(SegmentState& its_space, const SegmentRequest& its_request) noexcept;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer();

  void use(KnownSegment& its_segment) noexcept;
  [[nodiscard]] Outcome ended(remote::Status status) noexcept;
  [[nodiscard]] Outcome ended(AtOnce how) noexcept;

  SegmentState& space;
  const SegmentRequest& request;  // in the same frame
  Outcome outcome;
  KnownSegment* segment = nullptr;  // once it is counted among the segment's users
  std::uint64_t placement = 0;      // the segment's, when the present attempt began
  bool failed = false;              // the present attempt, as its member has
  bool locked = false;              // under the lock, its own or the process's
  bool odd = false;                 // an earlier put may have been cut off: look at the word
  remote::LockNode lock;            // its own
  // The rest is for puts.
  bool changing = false;         // something was posted, and the put is not complete
  std::uint64_t final_word = 0;  // the version's word once the put is complete; 0: not known yet
  Rank second = kNobody;         // the second copy, when it began
  std::uint64_t second_offset = 0;
};

/// A question to another member, in the frame of the protocol that asks.
struct Asked {
  Asked(SegmentState& its_space, Rank its_member, SegmentMessage& its_message);
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;
  ~Asked();

  SegmentState& space;
  Rank member;
  SegmentMessage& message;  // the question, then the answer
  bool answered = false;
};

struct SegmentState final : SegmentPort, remote::Part {
  SegmentState(std::unique_ptr<remote::Progress> own, remote::Progress& progress,
               SpaceOptions options);
  ~SegmentState() override;

  [[nodiscard]] SegmentOperation begin(const SegmentRequest& request, std::string_view name,
                                       std::uint64_t timeout_ns) override;
  /// Starts the protocol of a call.
  [[nodiscard]] SegmentOperation start(const SegmentRequest& request, std::string_view name,
                                       std::uint64_t timeout_ns);
  /// Begins a call on the segment, if this process knows it; `unknown`: it is resolved first.
  [[nodiscard]] remote::Status enter(Transfer& one) noexcept;

  // --- in mapped memory: at_once.cpp -------------------------------------------------------------
  [[nodiscard]] SegmentOperation begin_get(Key key, std::span<std::byte> to,
                                           std::uint64_t offset) override;
  [[nodiscard]] SegmentOperation begin_get_if_changed(Key key, std::span<std::byte> to,
                                                      std::uint64_t known_version,
                                                      std::uint64_t offset) override;
  [[nodiscard]] SegmentOperation begin_put(Key key, std::span<const std::byte> from,
                                           std::uint64_t offset) override;
  [[nodiscard]] SegmentOperation begin_lock(Key key, std::uint64_t timeout_ns) override;
  [[nodiscard]] SegmentOperation begin_unlock(Key key) override;
  [[nodiscard]] bool get_many_at_once(std::span<SegmentRead> reads) noexcept override;
  /// The call if it needs no request.
  [[nodiscard]] AtOnce at_once(const SegmentRequest& request) noexcept;
  [[nodiscard]] AtOnce get_at_once(Key key, std::span<std::byte> to, std::uint64_t offset,
                                   std::uint64_t known_version) noexcept;
  [[nodiscard]] AtOnce put_at_once(Key key, std::span<const std::byte> from,
                                   std::uint64_t offset) noexcept;
  [[nodiscard]] AtOnce lock_at_once(Key key, std::uint64_t owner) noexcept;
  /// The segment, if it is mapped here and nothing is unusual; else null.
  [[nodiscard]] KnownSegment* mapped(Key key) noexcept;
  [[nodiscard]] bool map(KnownSegment& segment) noexcept;
  [[nodiscard]] AtOnce get_mapped(KnownSegment& segment, std::span<std::byte> to,
                                  std::uint64_t offset, std::uint64_t known_version) noexcept;
  /// A get that excludes puts, or reads a version.
  [[nodiscard]] AtOnce get_whole(KnownSegment& segment, std::span<std::byte> to,
                                 std::uint64_t offset, std::uint64_t known_version) noexcept;
  /// A get that its own bound on the age lets take the copy.
  [[nodiscard]] AtOnce copy_at_once(const SegmentRequest& request) noexcept;
  /// A put under the lock.
  [[nodiscard]] AtOnce put_whole(KnownSegment& segment, std::span<const std::byte> from,
                                 std::uint64_t offset) noexcept;
  /// Puts under the lock if the version is `expected`, or whatever it is if that is UINT64_MAX.
  [[nodiscard]] AtOnce put_locked(KnownSegment& segment, std::span<const std::byte> from,
                                  std::uint64_t offset, std::uint64_t expected) noexcept;
  [[nodiscard]] AtOnce put_if_at_once(const SegmentRequest& request) noexcept;
  [[nodiscard]] SegmentOperation ended(AtOnce how, SegmentCall call, Key key,
                                       std::uint64_t offset = 0, std::size_t bytes = 0,
                                       std::uint64_t known_version = UINT64_MAX) const noexcept;

  // --- gets and puts: get.cpp, put.cpp -----------------------------------------------------------
  remote::Protocol<Outcome> get(SegmentRequest request);
  remote::Protocol<Outcome> put(SegmentRequest request);
  /// Writes to one copy, or to two, once the lock is held.
  remote::Protocol<remote::Status> change(Transfer& one);
  /// Waits until the segment has a place, and begins an attempt there.
  remote::Protocol<remote::Status> place(Transfer& one);
  /// The status of a step of the attempt: `moved` if it must begin anew.
  [[nodiscard]] remote::Status judge(Transfer& one, remote::Status status) const noexcept;
  [[nodiscard]] bool has_place(KnownSegment& segment) const noexcept;
  /// A get that the copy answers, if it is young enough.
  [[nodiscard]] AtOnce take_copy(const KnownSegment& segment, std::span<std::byte> to,
                                 std::uint64_t offset, std::uint64_t known_version,
                                 std::uint64_t max_age_ns) const noexcept;

  // --- locks: lock.cpp ---------------------------------------------------------------------------
  remote::Protocol<Outcome> lock(SegmentRequest request);
  remote::Protocol<remote::Status> acquire(Transfer& one);
  [[nodiscard]] AtOnce unlock_at_once(Key key, std::uint64_t owner, bool holder_died) noexcept;

  // --- what asks other members: control.cpp ------------------------------------------------------
  remote::Protocol<Outcome> allocate(SegmentRequest request, std::string name);
  remote::Protocol<Outcome> release(SegmentRequest request);
  remote::Protocol<Outcome> find(SegmentRequest request, std::string name);
  /// Finds out about a segment; it is known then, if that is `ok`.
  remote::Protocol<remote::Status> resolve(Key key, std::uint64_t owner);
  /// The message is the question, then the answer.
  remote::Protocol<remote::Status> ask(Rank member, SegmentMessage& message);
  [[nodiscard]] KnownSegment* known(Key key) noexcept {
    KnownSegment* const recent = lately_used[(key.slot() ^ key.home()) % kLatelyUsed];
    return recent != nullptr && recent->key == key ? recent : find_known(key);
  }
  [[nodiscard]] KnownSegment* find_known(Key key) noexcept;
  /// `unknown`: another member has to be asked.
  [[nodiscard]] remote::Status look(Key key, std::uint64_t owner) noexcept;
  [[nodiscard]] bool is_undecided() const noexcept;

  /// Says when operations at a segment may be posted.
  struct Gate {
    const SegmentState* space;
    Transfer* one;  // that posts changes; null: others
    Rank member;
    bool copies;  // the members decide what becomes of it
    /// A put that has posted nothing looks anew if a second copy is being made, or was made.
    [[nodiscard]] remote::Status now() const noexcept;
    [[nodiscard]] remote::Status refused() const noexcept;
    void posted() const noexcept {
      if (one != nullptr) one->changing = true;
    }
    void taken() const noexcept {}
  };
  [[nodiscard]] Gate gate_of(const KnownSegment& segment) const noexcept {
    return {this, nullptr, segment.primary, segment.copies > 1};
  }
  [[nodiscard]] auto read(const Transfer& one, std::uint64_t offset, void* to,
                          std::size_t bytes) noexcept {
    Operation operation = dunlin::read(one.segment->primary, pool.id(), offset, to, bytes);
    operation.more = one.request.more;
    return remote::post(fabric, operation, gate_of(*one.segment));
  }
  [[nodiscard]] auto read_word(const Transfer& one, std::uint64_t& word) noexcept {
    return read(one, one.segment->offset + kVersionWord, &word, 8);
  }
  /// By an atomic: it comes behind what this process has posted there before (F1).
  [[nodiscard]] auto read_word_in_order(const Transfer& one, std::uint64_t& word) noexcept {
    return remote::post(
        fabric,
        fetch_add(one.segment->primary, pool.id(), one.segment->offset + kVersionWord, 0, &word),
        gate_of(*one.segment));
  }

  [[nodiscard]] SharedCounter& counter_of(SegmentCall call) noexcept {
    return call == SegmentCall::get    ? counters.gets
           : call == SegmentCall::put  ? counters.puts
           : call == SegmentCall::lock ? counters.locks
                                       : counters.others;
  }

  // --- home and directory: home.cpp --------------------------------------------------------------
  void handle(Rank from, std::span<const std::byte> bytes);
  void allocate(Rank from, const SegmentMessage& request);
  [[nodiscard]] HeldSegment* holding(Key key) noexcept;
  [[nodiscard]] SegmentMessage describe(Key key, const HeldSegment& segment) const;
  [[nodiscard]] remote::Status look_up(Key key) const noexcept;
  void release(Rank from, const SegmentMessage& request);
  void invalidate(Key key, HeldSegment& segment);
  void prune();
  void close(Key key);
  void dropped(Rank by, Key key);
  void bind(Rank from, const SegmentMessage& request);
  void answer(Rank to, const SegmentMessage& request, remote::Status status, Key key = {});
  void take_answer(Rank from, const SegmentMessage& message);
  void learn(Rank primary, const SegmentMessage& description);
  /// Whether a member of ours may have sent this description.
  [[nodiscard]] bool is_possible(const SegmentMessage& description) const noexcept;
  std::size_t drop_what_closes();
  [[nodiscard]] Rank directory_of(const std::string& name) const noexcept;
  [[nodiscard]] Rank next_in_turn() noexcept;
  [[nodiscard]] bool gone(Rank rank) const noexcept;
  [[nodiscard]] bool is_lost(const KnownSegment& segment) const noexcept {
    return segment.lost || (segment.copies < 2 && gone(segment.primary));
  }
  /// Whether that rank is a member's, or was.
  [[nodiscard]] bool has_come(Rank rank) const noexcept;
  /// Whether the members have agreed that it is gone, or it has destroyed its space.
  [[nodiscard]] bool is_out(Rank rank) const noexcept;
  /// Whether that member has a part in this space, as all agree.
  [[nodiscard]] bool is_here(Rank rank) const noexcept;
  /// Lets the others reach the pool. A member that came later has no segment, and asks for none,
  /// before it takes part in the locks.
  void announce();
  /// Whether the founders, who let later members in, are gone before they have let this one in.
  [[nodiscard]] bool never_comes_in() const noexcept;

  // --- second copies: copies.cpp -----------------------------------------------------------------
  void handle_copies(Rank from, const SegmentMessage& message);
  /// Has a second copy made, unless no member has room for it.
  remote::Protocol<remote::Status> make_copy(Key key, Allocating first);
  remote::Protocol<remote::Status> copy_to(Rank backup, Key key, Copying& one);
  void begin_copies();
  void end_copy(Key key, const Copying& one, Allocating first);
  void tell_all(const SegmentMessage& message);
  void make_backup(Rank from, const SegmentMessage& message);
  void drop_backup(Key key);
  void adopt(Key key, const BackupCopy& copy);
  void take_placement(Rank from, const SegmentMessage& message);
  std::size_t answer_pauses();
  void move_known_segments();
  void copies_changed();

  // --- SegmentPort: segment.cpp ------------------------------------------------------------------
  [[nodiscard]] remote::Progress& its_progress() const noexcept override { return progress; }
  [[nodiscard]] const std::string& space_name() const noexcept override { return options.name; }
  [[nodiscard]] std::uint32_t members() const noexcept override { return progress.capacity(); }
  [[nodiscard]] Rank place_of(Placement placement) noexcept override;
  [[nodiscard]] std::string text_of(Rank rank) const override;
  [[nodiscard]] remote::PoolUse use() const noexcept override { return blocks.use(); }
  [[nodiscard]] std::vector<Key> lost() const override;
  [[nodiscard]] const std::string& why_refused() const noexcept override { return refusal; }
  void leave_members_asleep() noexcept override { puts_wake = false; }

  std::size_t poll_part() override;
  void members_changed() override;

  std::unique_ptr<remote::Progress> own_progress;
  remote::Progress& progress;
  Fabric& fabric;
  const bool coherent = fabric.properties().atomics_coherent_with_cpu;
  SpaceOptions options;
  Region pool;
  remote::Locks locks;
  remote::FirstFit blocks;
  remote::ControlChannel channel;
  Subscription subscription;
  std::vector<bool> withdrawn;
  std::vector<bool> refused;
  std::string refusal;  // the last
  std::vector<HeldSegment> held;
  std::vector<std::uint32_t> free_slots;
  std::map<std::uint64_t, HeldSegment> adopted;  // by key: those whose home has died
  std::set<std::uint64_t> released;              // of those
  std::map<std::uint64_t, BackupCopy> backups;
  std::map<std::uint64_t, Copying> copying;
  std::vector<std::pair<Rank, SegmentMessage>> early;    // of members that have taken over
  std::vector<std::pair<Rank, SegmentMessage>> pausing;  // to be answered
  struct Name {
    Key key;
    bool survives = false;  // its home
  };
  std::map<std::string, Name> names;
  std::vector<std::vector<std::unique_ptr<KnownSegment>>> known_at;  // by home, then slot
  static constexpr std::size_t kLatelyUsed = 64;
  std::array<KnownSegment*, kLatelyUsed> lately_used{};  // by slot and home; of known_at
  bool is_announced = false;                             // the pool
  bool puts_wake = true;                                 // the member, if it sleeps
  bool must_copy = false;                                // there was no memory for it
  bool must_prune = false;                               // of the held
  std::vector<std::pair<Rank, Key>> closing;             // to be dropped here, as that member says
  std::unordered_map<std::uint64_t, Asked*> asked;
  std::uint64_t next_id = 1;
  Rank turn;
  SpaceCounters counters{fabric, options.name};
  remote::Runs protocols{progress};  // that make second copies
};

}  // namespace dunlin

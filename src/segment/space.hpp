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

enum class SegmentOperation::Stage : std::uint8_t {
  begin,
  ask,          // a member was asked, and has not answered
  acquire,      // the lock
  read_before,  // the version word
  got_before,
  read_data,
  got_data,
  read_after,  // the version word again
  got_after,
  read_old,  // delta: the version before, to put a range into
  got_old,
  change,  // the data, between two steps of the version word if the coherence has one
};

/// The steps of a put, in their order (put.cpp); each coherence needs some of them.
enum class PutStep : std::uint8_t { mark, second_mark, second_data, second_unmark, data, unmark };
inline constexpr std::uint8_t kPutSteps = 6;
/// Of a put without versions: its one step has been posted.
inline constexpr auto kUnversionedPosted = static_cast<std::uint8_t>(PutStep::unmark);

inline constexpr Rank kNobody = UINT32_MAX;

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
    backup_made,       // its answer, with `backup_offset`
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
  enum class Stage : std::uint8_t { seek, asked, pausing, write, writing, completing };
  Stage stage = Stage::seek;
  std::uint32_t tried = 0;  // members, from the next rank on
  Rank backup = kNobody;
  std::uint64_t backup_offset = 0;
  std::vector<Rank> waiting_for;  // pausing: members that have not answered
  Completion written;
  bool allocating = false;  // the first one: `asker` waits for it
  Rank asker = 0;
  std::uint64_t id = 0;
};

/// The knowledge of this process about a slot of some member.
struct KnownSegment {
  std::uint32_t generation = 0;  // 0: nothing
  std::uint32_t released = 0;    // this generation and those before were released
  bool closing = false;          // the home wants it dropped
  bool lock_odd = false;         // under our lock, and a put was, or may have been, cut off
  bool unsettled = false;        // under our lock, a put was given up and may be under way
  bool paused = false;           // no put begins: a second copy is being made
  bool unsure = false;           // the primary died meanwhile: the new one has yet to say so
  bool moved = false;            // to another primary; until the locks are repaired
  bool lost = false;             // no member has it any more
  Coherence coherence = Coherence::null;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stale_ns = 0;
  std::uint32_t versions = 0;
  std::uint8_t copies = 1;
  Rank primary = 0;
  Rank backup = kNobody;
  std::uint64_t backup_offset = 0;
  std::uint64_t placement = 0;       // how often one of these has changed
  std::uint32_t users = 0;           // operations under way
  remote::LockNode lock;             // by lock()
  std::uint64_t lock_owner = 0;      // the owner: Request::owner
  SegmentOperation* turn = nullptr;  // the operation whose turn it is under the lock
  std::uint64_t seen_version = 0;    // delta: the latest that was read
  std::vector<std::byte> merged;     // delta: a version with a range put into it
  // temporal: the copy of the whole
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
  /// Where that version's bytes begin, in a block at that offset.
  [[nodiscard]] std::uint64_t data_at(std::uint64_t block, std::uint64_t version) const noexcept {
    const std::uint64_t slot = is_delta() ? version % (std::uint64_t{versions} + 1) : 0;
    return block + kDataOffset + slot * round_up(bytes, kCacheLineBytes);
  }
  [[nodiscard]] bool puts_lock() const noexcept {
    return versioned() || coherence == Coherence::strict;
  }
};

struct SegmentState final : SegmentPort, remote::Part {
  SegmentState(std::unique_ptr<remote::Progress> own, remote::Progress& progress,
               SpaceOptions options);
  ~SegmentState() override;

  using Stage = SegmentOperation::Stage;

  // --- operations: operation.cpp, transfer.cpp, put.cpp ------------------------------------------
  void advance(SegmentOperation& op) noexcept override;
  void clean_up(SegmentOperation& op) noexcept override;
  [[nodiscard]] bool begin_at_once(SegmentOperation& op,
                                   const SegmentOperation::Request& request) noexcept override;
  /// The segment, once this process knows it; until then, and if there is none, the operation asks
  /// or has ended.
  [[nodiscard]] KnownSegment* resolve(SegmentOperation& op) noexcept;
  [[nodiscard]] KnownSegment* known(Key key) noexcept;
  [[nodiscard]] bool has_answer(SegmentOperation& op) noexcept;
  void search(SegmentOperation& op) noexcept;
  [[nodiscard]] bool is_undecided(Rank rank) const noexcept;
  void ask(SegmentOperation& op, Rank member, const SegmentMessage& question) noexcept;
  /// Whether messages to that member find its space; if they never will, the operation has ended.
  [[nodiscard]] bool may_ask(SegmentOperation& op, Rank member) noexcept;
  [[nodiscard]] bool waits_for_answer(SegmentOperation& op) noexcept;
  void advance_control(SegmentOperation& op) noexcept;
  void advance_lock(SegmentOperation& op) noexcept;
  void unlock(SegmentOperation& op) noexcept;
  void advance_transfer(SegmentOperation& op) noexcept;
  void begin_transfer(SegmentOperation& op) noexcept;
  /// Whether the operation can go on where the segment is now; otherwise it waits or has ended.
  [[nodiscard]] bool has_place(SegmentOperation& op, KnownSegment& segment) noexcept;
  [[nodiscard]] bool has_turn(SegmentOperation& op, KnownSegment& segment) noexcept;
  [[nodiscard]] static Stage first_stage(const SegmentOperation& op,
                                         const KnownSegment& segment) noexcept;
  void got_version(SegmentOperation& op, KnownSegment& segment) noexcept;
  void got_version_to_put(SegmentOperation& op, KnownSegment& segment) noexcept;
  void got_version_again(SegmentOperation& op, KnownSegment& segment) noexcept;
  void got_data(SegmentOperation& op, KnownSegment& segment) noexcept;
  void try_again(SegmentOperation& op) noexcept;
  [[nodiscard]] bool change(SegmentOperation& op, KnownSegment& segment) noexcept;
  [[nodiscard]] bool change_unversioned(SegmentOperation& op, const KnownSegment& segment) noexcept;
  [[nodiscard]] Operation put_step(SegmentOperation& op, const KnownSegment& segment,
                                   PutStep step) noexcept;
  void changed(SegmentOperation& op, KnownSegment& segment) noexcept;
  /// Whether a copy that is not too old has answered the get.
  [[nodiscard]] bool take_copy(SegmentOperation& op, const KnownSegment& segment) noexcept;
  void keep_copy(const SegmentOperation& op, KnownSegment& segment);
  /// Whether the lock is held; if it never will be, the operation has ended.
  [[nodiscard]] bool acquire(SegmentOperation& op, const KnownSegment& segment) noexcept;
  /// Whether all was posted; if that will never be, the operation has ended.
  bool post(SegmentOperation& op, std::span<const Operation> batch, std::size_t& accepted) noexcept;
  bool read_version(SegmentOperation& op, const KnownSegment& segment) noexcept;
  bool read(SegmentOperation& op, const KnownSegment& segment, std::uint64_t offset, void* to,
            std::size_t bytes) noexcept;

  [[nodiscard]] SharedCounter& counter_of(SegmentOperation::Kind kind) noexcept {
    using Kind = SegmentOperation::Kind;
    return kind == Kind::get    ? counters.gets
           : kind == Kind::put  ? counters.puts
           : kind == Kind::lock ? counters.locks
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
  std::size_t drop_what_closes();
  [[nodiscard]] Rank directory_of(const std::string& name) const noexcept;
  [[nodiscard]] Rank next_in_turn() noexcept;
  [[nodiscard]] bool gone(Rank rank) const noexcept;

  // --- second copies: copies.cpp -----------------------------------------------------------------
  void handle_copies(Rank from, const SegmentMessage& message);
  void begin_copy(Key key, Copying& copying);
  void seek_backup(Key key, Copying& copying);
  [[nodiscard]] bool go_on_with_copy(Key key, Copying& copying);
  void end_copy(Key key);
  void tell_all(const SegmentMessage& message);
  void make_backup(Rank from, const SegmentMessage& message);
  void drop_backup(Key key);
  void adopt(Key key, const BackupCopy& copy);
  void take_placement(Rank from, const SegmentMessage& message);
  std::size_t answer_pauses();
  void move_known_segments();
  void copies_changed();

  // --- SegmentPort: segment.cpp ------------------------------------------------------------------
  void gather(bool on) noexcept override { gathers = on; }
  [[nodiscard]] remote::Progress& its_progress() const noexcept override { return progress; }
  [[nodiscard]] const std::string& space_name() const noexcept override { return options.name; }
  [[nodiscard]] std::uint32_t members() const noexcept override { return progress.size(); }
  [[nodiscard]] Rank place_of(Placement placement) noexcept override;
  [[nodiscard]] std::string text_of(Rank rank) const override;
  [[nodiscard]] remote::PoolUse use() const noexcept override { return blocks.use(); }
  [[nodiscard]] std::vector<Key> lost() const override;
  [[nodiscard]] const std::string& why_refused() const noexcept override { return refusal; }

  std::size_t poll_part() override;
  void members_changed() override;

  std::unique_ptr<remote::Progress> own_progress;
  remote::Progress& progress;
  Fabric& fabric;
  SpaceOptions options;
  Region pool;
  remote::Locks locks;
  remote::FirstFit blocks;
  bool gathers = false;  // what begins now is followed by more to the same home
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
  std::vector<std::vector<KnownSegment>> known_at;  // by home, then slot
  bool must_prune = false;                          // of the held
  std::vector<std::pair<Rank, Key>> closing;        // to be dropped here, as that member says
  std::unordered_map<std::uint64_t, SegmentOperation*> asked;
  std::uint64_t next_id = 1;
  Rank turn;
  SpaceCounters counters{fabric, options.name};
};

}  // namespace dunlin

#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <vector>

#include <dunlin/remote/pool.hpp>
#include <dunlin/segment.hpp>

#include "remote/control_channel.hpp"
#include "segment/statistics_page.hpp"

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
  change,  // the data, between two steps of the version word if the coherence has one
};

/// A segment's block in its member's pool: a line with the words of its coherence, then the bytes.
inline constexpr std::uint64_t kLockWord = 0;
inline constexpr std::uint64_t kVersionWord = 8;  // twice the version; odd while a put goes on
inline constexpr std::uint64_t kDataOffset = kCacheLineBytes;
static_assert(Key::of(1, 3, 2).value == 0x0000000200003001, "docs/formats/segment.md");

/// What members say to each other about segments, besides gets and puts.
struct SegmentMessage {
  enum class Type : std::uint32_t {
    allocate,     // to the home; bytes, coherence, stale_ns, name
    release,      // to the home
    look_up,      // to the home: what is behind this key?
    find,         // to the directory of the name
    bind,         // to the directory: this name means this key
    unbind,       // to the directory
    answer,       // to who asked, with the id of the question
    allocated,    // the answer to `allocate`
    invalidate,   // to who knows the segment: drop it
    invalidated,  // to the home: dropped, and nothing is under way there
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

/// A segment that this member holds.
struct HeldSegment {
  std::uint32_t generation = 0;
  bool taken = false;
  bool closing = false;
  Coherence coherence = Coherence::null;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stale_ns = 0;
  std::string name;
  std::vector<Rank> known_by;  // while closing: who has not dropped it yet
  Rank releaser = 0;
  std::uint64_t release_id = 0;
};

/// What this process knows of a slot of some member.
struct KnownSegment {
  std::uint32_t generation = 0;  // 0: nothing
  std::uint32_t released = 0;    // this generation and those before were released
  bool closing = false;          // the home wants it dropped
  bool lock_odd = false;         // under our lock, and a put was cut off
  Coherence coherence = Coherence::null;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stale_ns = 0;
  std::uint32_t users = 0;  // operations under way
  remote::LockNode lock;    // by lock()
  // temporal: the copy of the whole
  std::vector<std::byte> copy;
  std::uint64_t copy_version = 0;
  std::uint64_t copied_at_ns = 0;

  [[nodiscard]] bool versioned() const noexcept {
    return coherence == Coherence::write || coherence == Coherence::version ||
           coherence == Coherence::temporal;
  }
  [[nodiscard]] bool puts_lock() const noexcept {
    return versioned() || coherence == Coherence::strict;
  }
};

struct SegmentState final : remote::Part {
  SegmentState(std::unique_ptr<remote::Progress> own, remote::Progress& progress,
               SpaceOptions options);
  ~SegmentState() override;

  using Stage = SegmentOperation::Stage;

  // --- operations: operation.cpp, transfer.cpp ---------------------------------------------------
  void advance(SegmentOperation& op) noexcept;
  void clean_up(SegmentOperation& op) noexcept;
  /// The segment, once this process knows it; until then, and if there is none, the operation asks
  /// or has ended.
  [[nodiscard]] KnownSegment* resolve(SegmentOperation& op) noexcept;
  [[nodiscard]] KnownSegment* known(Key key) noexcept;
  void ask(SegmentOperation& op, Rank member, const SegmentMessage& question) noexcept;
  [[nodiscard]] bool waits_for_answer(SegmentOperation& op) noexcept;
  void advance_control(SegmentOperation& op) noexcept;
  void advance_lock(SegmentOperation& op) noexcept;
  void unlock(SegmentOperation& op) noexcept;
  void advance_transfer(SegmentOperation& op) noexcept;
  void begin_transfer(SegmentOperation& op) noexcept;
  void got_version(SegmentOperation& op, KnownSegment& segment) noexcept;
  void got_data(SegmentOperation& op, KnownSegment& segment) noexcept;
  void try_again(SegmentOperation& op) noexcept;
  [[nodiscard]] bool change(SegmentOperation& op, KnownSegment& segment) noexcept;
  void changed(SegmentOperation& op, KnownSegment& segment) noexcept;
  /// Whether a copy that is not too old has answered the get.
  [[nodiscard]] bool take_copy(SegmentOperation& op, const KnownSegment& segment) noexcept;
  void keep_copy(const SegmentOperation& op, KnownSegment& segment);
  /// Whether the lock is held; if it never will be, the operation has ended.
  [[nodiscard]] bool acquire(SegmentOperation& op, const KnownSegment& segment) noexcept;
  /// Whether all was posted; if that will never be, the operation has ended.
  bool post(SegmentOperation& op, std::span<const Operation> batch, std::size_t& accepted) noexcept;
  bool read_version(SegmentOperation& op, std::uint64_t offset) noexcept;
  bool read(SegmentOperation& op, std::uint64_t offset, void* to, std::size_t bytes) noexcept;

  [[nodiscard]] static space_page::Count counted_as(SegmentOperation::Kind kind) noexcept {
    using Kind = SegmentOperation::Kind;
    return kind == Kind::get    ? space_page::Count::gets
           : kind == Kind::put  ? space_page::Count::puts
           : kind == Kind::lock ? space_page::Count::locks
                                : space_page::Count::others;
  }

  // --- home and directory: home.cpp --------------------------------------------------------------
  void handle(Rank from, std::span<const std::byte> bytes);
  [[nodiscard]] SegmentMessage allocate(Rank from, const SegmentMessage& request);
  [[nodiscard]] remote::Status look_up(Key key) const noexcept;
  void release(Rank from, const SegmentMessage& request);
  void close(std::uint32_t slot);
  void dropped(Rank by, Key key);
  void bind(Rank from, const SegmentMessage& request);
  void answer(Rank to, const SegmentMessage& request, remote::Status status, Key key = {});
  void take_answer(Rank from, const SegmentMessage& message);
  void learn(const SegmentMessage& description);
  std::size_t drop_what_closes();
  [[nodiscard]] Rank directory_of(const std::string& name) const noexcept;
  [[nodiscard]] Rank next_in_turn() noexcept;
  [[nodiscard]] bool gone(Rank rank) const noexcept;

  std::size_t poll_part() override;
  void members_changed() override;

  std::unique_ptr<remote::Progress> own_progress;
  remote::Progress& progress;
  Fabric& fabric;
  SpaceOptions options;
  Region pool;
  remote::Locks locks;
  remote::FirstFit blocks;
  remote::ControlChannel channel;
  Subscription subscription;
  std::vector<bool> withdrawn;
  std::vector<HeldSegment> held;
  std::vector<std::uint32_t> free_slots;
  std::map<std::string, Key> names;
  std::vector<std::vector<KnownSegment>> known_at;  // by home, then slot
  std::vector<Key> closing;                         // to be dropped here
  std::unordered_map<std::uint64_t, SegmentOperation*> asked;
  std::uint64_t next_id = 1;
  Rank turn;
  SpaceStatistics statistics{fabric, options.name};
};

}  // namespace dunlin

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dunlin/remote.hpp>
#include <dunlin/segment/spec.hpp>

/// A SegmentSpace is memory that the members of a fabric share: each contributes a pool, and all
/// allocate, get and put segments in it by 64-bit keys. One thread uses a space, the one that polls
/// its fabric.
///
///     auto fabric = dunlin::join({.group = "rack7", .members = 2});
///     dunlin::SegmentSpace space(*fabric, {.pool_bytes = 1 << 20});
///     std::uint64_t load = 42;
///     auto made = space.allocate({.bytes = 8, .coherence = dunlin::Coherence::write,
///                                 .name = "load/rack7"}).outcome();
///     space.put(made.key, dunlin::bytes_of(load)).outcome();
///     auto found = space.find("load/rack7").outcome();             // at another member
///     space.get(found.key, dunlin::bytes_of(load)).outcome();
///
/// Invariants (docs/segment.md has the protocols, and the promises of each coherence):
///  SEG-1  A key of a released segment never reaches another segment's bytes: its memory is used
///         again only when every member that knew it has dropped it and has nothing under way
///         there.
///  SEG-2  Once a release has ended, each get and put of that key ends with `released`.
///  SEG-3  A put under write, strict, version or temporal happens as a whole or not at all, for all
///         gets; if its writer dies in the middle, gets end with `half_written` until the next put
///         of the whole. Under delta such a put has happened, or has not.
///  SEG-4  An operation on a segment whose member has failed ends with `lost`, unless it has a
///         second copy.
namespace dunlin {

/// One call of a SegmentSpace, which outlives it.
///
///     dunlin::Outcome got = space.get(key, buffer).outcome();   // waits
///     auto put = space.put(key, buffer);                        // goes on by itself
using SegmentOperation = remote::Call<Outcome>;

struct SpaceOptions {
  std::string name = "space";               // the same at all members
  std::size_t pool_bytes = 1 << 20;         // this member's contribution; may be 0
  std::uint32_t channel = kSegmentChannel;  // must differ if a fabric has several spaces
  std::uint32_t lock_channel = kLockChannel;
};

/// One of several gets that begin together; the call belongs to the caller.
struct SegmentGet {
  SegmentOperation& operation;
  Key key;
  std::span<std::byte> to;
  std::uint64_t offset = 0;
};
/// One of several gets that are waited for together.
struct SegmentRead {
  Key key;
  std::span<std::byte> to;
  std::uint64_t offset = 0;
  remote::Status status = remote::Status::under_way;  // how it ended
  std::uint64_t version = 0;                          // that was got
};
/// One of several puts that begin together; the call belongs to the caller.
struct SegmentPut {
  SegmentOperation& operation;
  Key key;
  std::span<const std::byte> from;
  std::uint64_t offset = 0;
};

class SegmentSpace {
 public:
  /// The space stops when any member fails. Does not wait for the others' spaces; operations do.
  /// Throws Error.
  explicit SegmentSpace(Fabric& fabric, SpaceOptions options = {});
  /// The space goes on as the membership of `progress` does. The progress must outlive the space.
  SegmentSpace(remote::Progress& progress, SpaceOptions options = {});
  ~SegmentSpace();
  SegmentSpace(const SegmentSpace&) = delete;
  SegmentSpace& operator=(const SegmentSpace&) = delete;

  /// A sentence that names the last member whose space has other options than ours, and what
  /// differs; empty: there is none. Operations that need that member end with `refused`.
  [[nodiscard]] const std::string& why_refused() const noexcept;

  // --- segments ----------------------------------------------------------------------------------
  /// Allocates a segment; the outcome has its key.
  [[nodiscard]] SegmentOperation allocate(const SegmentSpec& spec);
  /// Waits for the members that are using the segment; unlocks it if this process holds its lock.
  [[nodiscard]] SegmentOperation release(Key key);
  /// Finds the segment with this name; the outcome has its key.
  [[nodiscard]] SegmentOperation find(const std::string& name);

  // --- gets and puts; buffer and offset begin at the same place of an 8-byte word ----------------
  [[nodiscard]] SegmentOperation get(Key key, std::span<std::byte> to, std::uint64_t offset = 0);
  /// version, temporal and delta: transfers nothing if the segment's version is `known`.
  [[nodiscard]] SegmentOperation get_if_changed(Key key, std::span<std::byte> to,
                                                std::uint64_t known, std::uint64_t offset = 0);
  /// Takes this process's copy if what it has was the latest at most so long ago; otherwise reads,
  /// and a get of the whole leaves a copy. Not under null, read and strict.
  [[nodiscard]] SegmentOperation get_no_older(Key key, std::span<std::byte> to,
                                              std::uint64_t age_ns, std::uint64_t offset = 0);
  /// delta: gets the version of that number, or the `kLatestVersion - n`; `not_kept` if it is not
  /// among the last `versions`.
  [[nodiscard]] SegmentOperation get_version(Key key, std::span<std::byte> to,
                                             std::uint64_t version, std::uint64_t offset = 0);
  [[nodiscard]] SegmentOperation put(Key key, std::span<const std::byte> from,
                                     std::uint64_t offset = 0);
  /// version, temporal and delta: puts only if the segment's version is `expected`; else it ends
  /// with `changed`, and the outcome has the version.
  [[nodiscard]] SegmentOperation put_if_version(Key key, std::span<const std::byte> from,
                                                std::uint64_t expected, std::uint64_t offset = 0);
  /// These get or put many segments. If neighbours in the span go to one member, a network sends
  /// them as one message: at once, or in the next poll().
  void get(std::span<const SegmentGet> gets) noexcept;
  void put(std::span<const SegmentPut> puts) noexcept;
  /// Gets all of these, and waits until all have ended. Where memory is mapped, this asks for the
  /// lines of many before it reads the first. Returns the status of the first that is not `ok`.
  remote::Status get_many(std::span<SegmentRead> reads);

  // --- locks: of this process, for all its gets and puts of the segment --------------------------
  /// Ends with `timed_out` if the lock does not come in time. The outcome says whether it was
  /// recovered.
  [[nodiscard]] SegmentOperation lock(Key key, std::uint64_t timeout_ns = remote::kForever);
  /// Ends with `busy` instead of waiting for the lock.
  [[nodiscard]] SegmentOperation try_lock(Key key);
  /// Requires that the operations under the lock have ended. Ends at once.
  [[nodiscard]] SegmentOperation unlock(Key key);

  // --- progress ----------------------------------------------------------------------------------
  std::size_t poll() { return progress().poll(); }
  [[nodiscard]] Waits waits() const { return progress().waits(); }
  [[nodiscard]] remote::Progress& progress() const noexcept;
  [[nodiscard]] Fabric& fabric() const noexcept { return progress().fabric(); }

  // --- figures -----------------------------------------------------------------------------------
  /// The use of this member's pool.
  [[nodiscard]] remote::PoolUse use() const noexcept;
  /// The segments that this process has used and whose member has failed.
  [[nodiscard]] std::vector<Key> lost() const;

 private:
  friend class SegmentPort;
  /// Gets those that are under way.
  remote::Status get_the_rest(std::span<SegmentRead> reads);
  explicit SegmentSpace(std::unique_ptr<SegmentPort> port) noexcept;
  std::unique_ptr<SegmentPort> port_;  // src/segment/port.hpp
};

/// Takes a segment's lock, waiting for it, and holds the lock until it is destroyed.
class SegmentLock {
 public:
  /// Throws Error if the lock is not got, with the reason.
  SegmentLock(SegmentSpace& space, Key key, std::uint64_t timeout_ns = remote::kForever);
  ~SegmentLock();
  SegmentLock(const SegmentLock&) = delete;
  SegmentLock& operator=(const SegmentLock&) = delete;
  /// Whether the last holder died while it held the lock: the data may be half changed then.
  [[nodiscard]] bool recovered() const noexcept { return recovered_; }

 private:
  SegmentSpace& space_;
  Key key_;
  bool recovered_ = false;
};

}  // namespace dunlin

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include <dunlin/remote.hpp>
#include <dunlin/store/operation.hpp>

#include "store/format.hpp"

/// The state of an operation: the request, its progress, and every byte that the fabric reads or
/// writes for it. It belongs to the store, so that a change whose caller has given it up can be
/// completed.
namespace dunlin::store {

/// An operation whose steps end at once, as on shm, takes so many and then lets others poll.
inline constexpr int kStepsAtOnce = 4096;
/// Attempts at an entry that is being written before the next ones rest.
inline constexpr std::uint32_t kTriesAtOnce = 32;
/// A time to live that is longer is forever.
inline constexpr std::uint64_t kLongestTtlNs = UINT64_MAX / 4;
/// The rest of a longer entry comes while its beginning is copied.
inline constexpr std::size_t kMostPrefetchedBytes = 1024;
/// No chain is as long; a peer could write a circle.
inline constexpr std::uint32_t kMostBuckets = 1U << 16;

enum class Kind : std::uint8_t {
  get,
  put,
  insert,
  replace,
  erase,
  compare_and_set,
  update,
  expire,
  count,
  evict,       // erase, if it is in this place
  reap,        // erase, if it has expired
  read,        // get, for a transaction: with the version of the chain
  restore,     // makes a second copy, if the key is there
  copy_put,    // the part of a change at the second home
  copy_erase,  // likewise
  raise_copy,  // at the home that gets the keys of a chain: no lower version is given there
  take_chain,  // likewise: takes the lock of a chain, and keeps it
  drop_stray,  // likewise: erases a key that the chain's first home does not have
  leave,       // waits until this home has left
  take_keys,   // waits until this member has got keys
  hold_copy,   // hold, at the second home
  hold         // for a transaction: locks the chain, and finds the key and a vacant slot
};
/// Part of a change of another's.
[[nodiscard]] constexpr bool is_copy(Kind kind) noexcept {
  return kind == Kind::copy_put || kind == Kind::copy_erase || kind == Kind::raise_copy ||
         kind == Kind::take_chain || kind == Kind::drop_stray;
}
/// For a transaction. It locks its chains in one order, so it is told when a home is gone, and no
/// call goes to another home by itself.
[[nodiscard]] constexpr bool is_hold(Kind kind) noexcept {
  return kind == Kind::hold || kind == Kind::hold_copy;
}
/// For the work of the store itself.
[[nodiscard]] constexpr bool waits(Kind kind) noexcept {
  return kind == Kind::leave || kind == Kind::take_keys;
}

enum class Stage : std::uint8_t {
  attach,  // know the shape of the home's index
  lock,    // compare-and-swap the chain's lock
  locked,  //
  bucket,  // read the next bucket of the chain
  bucket_read,
  check,  // of a key that is absent: read the depth of the chain behind its slots
  checked,
  entry,  // read the candidate's entry
  entry_read,
  room,        // allocate what the change needs
  await_room,  // likewise, without the lock: its home makes room
  copy,        // begin the change at the second home
  copying,     // wait for it
  fail_over,   // wait until the members agree on the death of a home
  commit,      // post the change
  committed,
  count,
  counted,
  leave,
  done
};

/// Bytes on cache lines, which grow.
class Image {
 public:
  /// Requires nothing of the former content to be kept.
  void reserve(std::size_t bytes) {
    const std::size_t lines = (bytes + kCacheLineBytes - 1) / kCacheLineBytes;
    if (lines <= lines_) return;
    data_ = std::make_unique_for_overwrite<Line[]>(lines);
    lines_ = lines;
  }
  [[nodiscard]] std::byte* data() noexcept { return data_[0].bytes.data(); }

 private:
  struct alignas(kCacheLineBytes) Line {
    std::array<std::byte, kCacheLineBytes> bytes;
  };
  std::unique_ptr<Line[]> data_ =
      std::make_unique<Line[]>(1);  // NOLINT(*-avoid-c-arrays): of run time
  std::size_t lines_ = 1;
};

/// Between attempts at what another member has locked, or is writing, longer each time: the queue
/// to the home is not only for those that wait, but also for those that agree on a death. No two
/// are equally long, so that none falls into step with periodic work of others.
struct Rest {
  static constexpr std::uint64_t kShortestNs = 500;
  static constexpr std::uint32_t kMostDoublings = 7;
  static constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;
  std::uint64_t until_ns = 0;
  /// How many rests have begun. The next one is at least kShortestNs, doubled for each of them, but
  /// not more than kMostDoublings times.
  std::uint32_t times = 0;
  [[nodiscard]] std::uint64_t next_ns() noexcept {
    const std::uint64_t least = kShortestNs << std::min(times, kMostDoublings);
    return least + (least * (++times * kGoldenRatio >> 56) >> 8);
  }
};

/// A main header, a slot or a link: in the index, or in the memory for entries, where extents and
/// indirect headers are.
struct Place {
  bool in_slabs = false;
  std::uint64_t offset = 0;
  std::uint64_t word = 0;  // that was seen there
  [[nodiscard]] Place at(std::uint64_t bytes) const noexcept { return {in_slabs, offset + bytes}; }
  /// As records of transactions have it.
  [[nodiscard]] std::uint64_t encoded() const noexcept {
    return offset << 1 | (in_slabs ? 1U : 0U);
  }
};

struct Work {
  static constexpr std::size_t kMostSteps = 14;
  static constexpr std::size_t kNoRecord = SIZE_MAX;

  Kind kind = Kind::get;
  Stage stage = Stage::done;
  bool locked = false;
  bool from_cache = false;
  bool present = false;  // there is an entry of the key, expired or not
  bool has_vacant = false;
  bool has_entry_block = false;
  bool has_bucket_block = false;
  bool entry_is_large = false;
  std::uint8_t candidates = 0;
  std::uint8_t candidate = 0;
  remote::Status end_status = remote::Status::ok;

  Rank home = 0;
  std::uint64_t hash = 0;
  std::uint64_t ttl_ns = kNoExpiry;
  std::uint64_t expected_version = 0;
  std::size_t value_bytes = 0;  // that are written; in `out` already, but for an update
  std::size_t key_bytes = 0;
  std::array<std::byte, kMaxStoreKeyBytes> key{};
  StoreUpdater updater;

  std::uint64_t number = 0;  // of the main header
  Place main;                // where it is
  Place bucket;              // that is read: the offset alone
  std::uint64_t next_link = 0;
  Place last_link;
  std::uint64_t chain_version = 0;
  std::uint64_t former_version = 0;  // of the chain, when it was gone through before
  std::uint64_t next_version = 0;    // of the chain, after the change
  std::uint32_t buckets = 0;
  /// How often the key was looked up anew, because the cached location was out of date or the entry
  /// was being written. After the first time the cache is not asked; from kTriesAtOnce on, the
  /// operation rests before each further lookup.
  std::uint32_t tries = 0;
  Rest rest;
  std::array<Place, kSlots> places{};
  Place vacant;
  std::array<Place, kMaxTransactionWrites> vacants{};  // hold: of the chain
  std::uint8_t vacant_count = 0;
  Place slot;
  std::size_t read_bytes = 0;
  EntryHead head;  // of the key's entry

  const std::function<bool(std::uint64_t hash)>* is_stray = nullptr;  // drop_stray
  std::uint64_t lock_word = 0;
  bool has_lock_word = false;  // of the one who began the call
  bool lock_is_held = false;   // by that one, before the call
  bool keeps_lock = false;     // and afterwards
  std::uint64_t before = 0;
  std::size_t asked_for = 0;  // bytes of a block that was not there
  bool out_of_room = false;
  remote::SlabBlock entry_block;
  remote::SlabBlock bucket_block;
  bool waits_for_room = false;     // the lock is being given back
  bool has_moved = false;          // likewise: the key has another chain now
  bool gives_way = false;          // likewise: others wait for the lock that hold another
  bool is_copied = false;          // the change is at the second home
  StoreOperation* copy = nullptr;  // of this change, at the second home
  Rank second = 0;                 // where it is
  Rank first = 0;                  // copy_put, copy_erase: the home whose change it is
  bool room_is_large = false;
  std::uint32_t room_class = 0;
  std::uint64_t room_since_ns = 0;
  Location victim;  // evict
  std::size_t redo_record = kNoRecord;

  alignas(kCacheLineBytes) MainHeader header;  // as it was read
  std::array<std::uint64_t, 4> clock{};        // clock, generation, hands
  std::array<std::uint64_t, 2> counters{};
  std::uint64_t depth = 0;
  Image in;
  Image out;
  Image redo;
  Bucket new_bucket;
  std::uint64_t new_link = 0;
  std::uint64_t new_guard = 0;
  Slot new_slot;
  std::array<std::uint64_t, 2> unlock{};  // version, lock

  std::array<Operation, kMostSteps> batch;
  std::size_t steps = 0;
  std::size_t posted = 0;
  Completion done;  // of a change that was given up by its caller

  [[nodiscard]] std::span<const std::byte> key_span() const noexcept {
    return {key.data(), key_bytes};
  }
  void add(const Operation& operation) noexcept { batch[steps++] = operation; }
};

/// A call on a chain at a home that gets keys, for the one who moves them and holds its lock, or
/// takes it.
struct ChainCall {
  Kind kind = Kind::take_chain;
  Rank to = 0;
  Rank first = 0;  // the keys' first home
  std::uint64_t lock_word = 0;
  bool is_locked = false;
  bool keeps_lock = false;
  std::uint64_t ttl_ns = kNoExpiry;
  std::uint64_t version = 0;
  const std::function<bool(std::uint64_t hash)>* is_stray = nullptr;
  std::optional<std::uint64_t> position = std::nullopt;  // in place of the key's
};

}  // namespace dunlin::store

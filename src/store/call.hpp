#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <dunlin/remote.hpp>
#include <dunlin/store/operation.hpp>

#include "store/format.hpp"
#include "store/index_shape.hpp"

/// What the calls of a store have in common: the memory that they read into, their backoff, and the
/// search for a key in its chain.
namespace dunlin::store {

struct State;

/// A call whose steps end at once, as on shm, takes so many and then lets others poll.
inline constexpr int kStepsAtOnce = 4096;
/// A call reads what is being written so often at once; before further attempts it backs off.
inline constexpr std::uint32_t kTriesAtOnce = 32;
/// A time to live that is longer is forever.
inline constexpr std::uint64_t kLongestTtlNs = UINT64_MAX / 4;
/// No chain is as long; a peer could write a circle.
inline constexpr std::uint32_t kMostBuckets = 1U << 16;

/// Says when an operation may be posted to a home, and counts the batches of a call.
struct HomeGate {
  const State* state;
  Rank home;
  std::uint32_t* round_trips;
  [[nodiscard]] remote::Status now() const noexcept;
  [[nodiscard]] remote::Status refused() const noexcept;
  void posted() const noexcept { ++*round_trips; }
  void taken() const noexcept {}
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
  [[nodiscard]] bool has(const std::byte* byte) const noexcept {
    const auto* const begin = data_[0].bytes.data();
    return byte >= begin && byte < begin + lines_ * kCacheLineBytes;
  }

 private:
  struct alignas(kCacheLineBytes) Line {
    std::array<std::byte, kCacheLineBytes> bytes;
  };
  std::unique_ptr<Line[]> data_ =
      std::make_unique<Line[]>(1);  // NOLINT(*-avoid-c-arrays): of run time
  std::size_t lines_ = 1;
};

/// Objects that are used again.
template <class T>
class Spares {
 public:
  [[nodiscard]] std::unique_ptr<T> take() {
    if (all_.empty()) return std::make_unique<T>();
    std::unique_ptr<T> one = std::move(all_.back());
    all_.pop_back();
    return one;
  }
  void give_back(std::unique_ptr<T> one) { all_.push_back(std::move(one)); }
  void clear() noexcept { all_.clear(); }

 private:
  std::vector<std::unique_ptr<T>> all_;
};

/// The pauses between attempts at what another member has locked, or is writing. Each is longer
/// than the one before, because those that agree on a death need the queue to the home, too. No two
/// are equally long, so that none falls into step with periodic work of others.
struct Rest {
  static constexpr std::uint64_t kShortestNs = 500;
  static constexpr std::uint32_t kMostDoublings = 7;
  static constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;
  std::uint64_t until_ns = 0;
  /// How many pauses have begun. The next one is at least kShortestNs, doubled for each of them,
  /// but not more than kMostDoublings times.
  std::uint32_t times = 0;
  [[nodiscard]] std::uint64_t next_ns() noexcept {
    const std::uint64_t least = kShortestNs << std::min(times, kMostDoublings);
    return least + (least * (++times * kGoldenRatio >> 56) >> 8);
  }
  /// For `co_await`: the next pause, so many times as long.
  [[nodiscard]] remote::UntilTime next(Fabric& fabric, std::uint64_t factor = 1) noexcept {
    return {fabric, fabric.now_ns() + factor * next_ns()};
  }
};

/// A main header, a slot or a link: in the index, or in the memory for entries, where extents and
/// indirect headers are.
struct Place {
  bool in_slabs = false;
  std::uint64_t offset = 0;
  std::uint64_t word = 0;  // that was seen there
  [[nodiscard]] Place at(std::uint64_t bytes) const noexcept { return {in_slabs, offset + bytes}; }
  /// The form in which records of transactions have it.
  [[nodiscard]] std::uint64_t encoded() const noexcept {
    return offset << 1 | (in_slabs ? 1U : 0U);
  }
};

/// The key of a call, and what the call has read. The result keeps it, because the value is there.
struct CallMemory {
  /// Whether these bytes are in it.
  [[nodiscard]] bool has(std::span<const std::byte> bytes) const noexcept {
    const std::byte* const first = bytes.data();
    return entry.has(first) || (first >= key.data() && first < key.data() + key.size());
  }

  std::size_t key_bytes = 0;
  std::array<std::byte, kMaxStoreKeyBytes> key{};
  Image entry;
  alignas(kCacheLineBytes) MainHeader header;  // or the bucket that was read last
  std::array<std::uint64_t, 4> clock{};        // the home's clock, generation, and hands
  std::uint64_t depth = 0;
};

/// The home at which a call looks at a chain.
enum class Side : std::uint8_t {
  owner,    // of the key
  copy,     // a backup, or a member that gets a copy
  receiver  // of a chain that gets a copy of another one's keys
};

/// What a call sees of an entry that it has read.
enum class Sight : std::uint8_t {
  key,     // it is the key's
  other,   // it is another key's, or dead
  longer,  // it is longer than what was read
  again    // it is being written, so the call reads it again
};

/// The search for a key in its chain at one home, and what it has found.
struct Lookup {
  Lookup(State& state, Side its_side, StoreKey key);
  /// Begins the search anew, in the chain that has the key as far as this process knows.
  void locate(const State& state) noexcept;
  [[nodiscard]] std::uint64_t position() const noexcept { return IndexShape::position_of(hash); }
  [[nodiscard]] CallMemory& memory() noexcept { return *result.memory; }
  [[nodiscard]] std::span<const std::byte> key() const noexcept {
    return {result.memory->key.data(), result.memory->key_bytes};
  }
  [[nodiscard]] bool is_candidate(std::uint64_t slot_hash) const { return slot_hash == hash; }
  void note_vacant(const Place& bucket, std::size_t number);
  void note_slot(const Place& bucket, std::size_t number) noexcept;
  /// How much of the entry is read next, at most that of a block.
  [[nodiscard]] std::size_t bytes_to_read(std::size_t block) const noexcept;
  /// Judges the entry that was read. Under the lock no other member changes it, and it is whole.
  [[nodiscard]] Sight judge() noexcept;
  /// What the caller sees of the entry that was found. Requires the home's clock.
  void take_entry(const State& state) noexcept;
  [[nodiscard]] CallResult ended(remote::Status status) noexcept;

  std::uint64_t hash = 0;
  std::uint64_t route = 0;  // of the key's slot, as `home` was taken from it
  Side side;
  bool is_locked = false;    // no other member changes the chain
  bool is_change = false;    // of the chain, or may become one
  bool wants_value = false;  // also under the lock; a get always reads it
  bool is_too_long = false;  // the key
  /// All vacant slots of the chain, for a transaction.
  std::vector<Place>* vacants = nullptr;

  // the chain
  Rank home = 0;
  std::uint64_t number = 0;            // of the main header
  Place main;                          // where it is
  std::uint64_t version = UINT64_MAX;  // of the chain; none was seen
  std::uint64_t depth = 0;
  bool has_vacant = false;
  Place vacant;
  Place last_link;

  // the entry
  bool present = false;     // there is an entry of the key, expired or not
  bool from_cache = false;  // its location
  Place slot;
  std::size_t read_bytes = 0;
  EntryHead head;
  /// How often the key was looked up anew, because the cached location was out of date or the entry
  /// was being written. After the first time the cache is not asked.
  std::uint32_t tries = 0;

  CallResult result;
};

}  // namespace dunlin::store

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dunlin/remote.hpp>
#include <dunlin/store/batch.hpp>
#include <dunlin/store/key.hpp>
#include <dunlin/store/operation.hpp>
#include <dunlin/store/scan.hpp>
#include <dunlin/store/transaction.hpp>

/// A Store is a key-value store in the memory of the members of a fabric. Each member contributes
/// memory, a hash assigns each key to one member, and all members read and change all keys by
/// one-sided access: the member that holds a key takes no part. One thread uses a store, the one
/// that polls its fabric.
///
///     auto fabric = dunlin::shm::join({.group = "rack7", .members = 2});
///     dunlin::Store store(*fabric, {.memory_bytes = 64 << 20});
///     store.put("load/rack7", "0.75").wait();
///     auto got = store.get("load/rack7");                  // under way
///     if (got.outcome().found()) use(got.text());          // waits
///
/// Invariants (docs/store.md explains and proves them):
///  STO-1  Calls on one key are linearizable, from all members.
///  STO-2  No key is twice in the store.
///  STO-3  A get never returns bytes of another key, or of two versions.
///  STO-4  A change that was cut off by its member's death has happened as a whole, or not at all,
///         once the death is agreed; and no member waits for its lock any more.
///  STO-5  A call on a key whose member has failed ends with `lost`.
///  STO-6  A location that is cached is never trusted: the entry decides.
///  STO-7  Transactions over several keys, and the calls that change one, are strictly
///         serializable.
///  STO-8  A transaction that was cut off by its member's death has happened at all remaining
///         homes, or at none, once they have asked each other.
///  STO-9  A commit that its caller has given up is completed, or has not happened at all.
///  STO-10 An index that grows hides no key, and shows none twice.
///  STO-M1 A home that leaves, or gives keys away, loses no key, and calls on its keys go on.
///  STO-M9 With copies: 2, each key that moves is at two homes at any time.
///  STO-C1 With copies: 2, a change that has ended is not lost when one home dies.
///  STO-C2 A get that begins after a change has ended never returns an older value from a home that
///         the members have removed.
///  STO-C3 Scans return a key from one of its homes.
///  STO-C4 The copies are made again. A key of which both homes die before that is `lost`, never
///         absent.
namespace dunlin::store {
class LocationCache;
}

namespace dunlin {

/// Of the messages of a Store with eviction, unless told otherwise.
inline constexpr std::uint32_t kStoreChannel = kMaxChannels - 5;

inline constexpr std::size_t kDefaultLargeBytes = SIZE_MAX;

/// How a put ends that finds no room in its home's memory.
enum class Eviction : std::uint8_t {
  none,  // it ends with no_room
  lru    // the home erases keys that were not used for long, about in that order
};

/// For StoreOptions::shared_cache; 16 bytes hold the location of one key. Any threads.
[[nodiscard]] std::shared_ptr<store::LocationCache> make_location_cache(std::size_t bytes);

struct StoreOptions {
  std::string name = "store";  // the same at all members
  /// Members of the ranks below this hold keys, and the others are clients only; 0: all hold keys.
  /// The same at all members.
  std::uint32_t homes = 0;
  /// Of a member that holds no keys at first: it contributes memory, too, so that take_keys(), or
  /// the leave() of another, moves keys to it. May differ. Without effect with eviction.
  bool contributes = false;
  /// Memory that this member contributes, if it holds keys; may differ. The part without the index
  /// holds entries.
  std::size_t memory_bytes = 64 << 20;
  /// The part of memory_bytes for entries of more than 32 KB; by default a quarter, and at most
  /// 16 MB.
  std::size_t large_bytes = kDefaultLargeBytes;
  /// Keys for which the member's index is laid out; 0: one for each 256 bytes of memory. With more
  /// keys it grows into the memory for entries, as long as the member polls.
  std::uint64_t expected_keys = 0;
  /// Members that hold each key: 1 or 2. The same at all members. With 2, a change has ended when
  /// it is at two homes, and no key is lost by one death. Not with eviction.
  std::uint32_t copies = 1;
  /// Of this process's location cache; 0: none. 16 bytes hold the location of one key.
  std::size_t cache_bytes = 1 << 20;
  /// In place of one of its own: a location cache that several stores of this process share, each
  /// with its thread and its attachment to the same members. Null: none.
  std::shared_ptr<store::LocationCache> shared_cache = nullptr;
  /// The same at all members. With eviction, keys vanish that no member has erased.
  Eviction eviction = Eviction::none;
  /// Of this member's memory that holds entries, in whole slabs of 64 KB; 0: all. limit_memory()
  /// changes it.
  std::size_t limit_bytes = 0;
  /// With eviction: a change that has waited for room so long in all ends with no_room.
  std::uint64_t wait_for_room_ns = 1'000'000'000;
  /// With eviction: of its messages. Two such stores on one fabric have different ones.
  std::uint32_t channel = kStoreChannel;
};

/// Figures that a process has without asking others: of its own calls, and of its own memory.
struct StoreStatistics {
  // calls of this process
  std::uint64_t gets = 0, changes = 0;
  std::uint64_t cache_hits = 0, cache_misses = 0, cache_stale = 0;
  std::uint64_t bucket_reads = 0, entry_reads = 0;
  std::uint64_t read_again = 0;      // entries that were being written
  std::uint64_t lock_waits = 0;      // attempts at a lock that another member had
  std::uint64_t marks = 0;           // with eviction: uses of entries that the home was told of
  std::uint64_t waits_for_room = 0;  // likewise: how often a home was asked for room
  // the member's own part; with copies: 2, second copies count, too
  std::uint64_t keys = 0;
  std::uint64_t value_bytes = 0;
  std::uint64_t memory_bytes = 0, memory_used = 0;  // without what the limit keeps unused
  std::uint64_t memory_held = 0;                    // in slabs that members have, used or not
  std::uint64_t expired = 0;                        // keys that this member has erased for that
  std::uint64_t evictions = 0;                      // keys of this member's
  std::uint64_t main_slots = 0;                     // places for keys in main headers
  std::uint64_t splits = 0;                         // by which the index has grown
  std::uint64_t repaired_locks = 0;                 // of members that died
  std::uint64_t repaired_entries = 0;
  std::uint64_t keys_moved = 0;  // to another member, as this one left or gave keys
  // with copies: 2
  std::uint64_t copies_restored = 0;  // made by this member after deaths
  bool copies_complete = true;        // of all keys that this member holds first
  [[nodiscard]] double occupancy() const noexcept {
    return main_slots == 0 ? 0 : static_cast<double>(keys) / static_cast<double>(main_slots);
  }
};

class Store {
 public:
  /// Stops when any member fails. Does not wait for the others' stores; operations do. Throws
  /// Error.
  explicit Store(Fabric& fabric, StoreOptions options = {});
  /// Goes on as its membership does. The progress must outlive the store.
  explicit Store(remote::Progress& progress, StoreOptions options = {});
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // --- one key; values are 0 to kMaxStoreValueBytes long, and copied by the call -----------------
  [[nodiscard]] StoreOperation get(StoreKey key);
  [[nodiscard]] StoreOperation put(StoreKey key, std::span<const std::byte> value,
                                   std::uint64_t ttl_ns = kNoExpiry);
  [[nodiscard]] StoreOperation put(StoreKey key, std::string_view value,
                                   std::uint64_t ttl_ns = kNoExpiry);
  /// Only if the key is absent; changed() says whether it was.
  [[nodiscard]] StoreOperation insert(StoreKey key, std::span<const std::byte> value,
                                      std::uint64_t ttl_ns = kNoExpiry);
  /// Only if the key is present.
  [[nodiscard]] StoreOperation replace(StoreKey key, std::span<const std::byte> value,
                                       std::uint64_t ttl_ns = kNoExpiry);
  [[nodiscard]] StoreOperation erase(StoreKey key);
  /// Only if the key has this version; 0: if it is absent.
  [[nodiscard]] StoreOperation compare_and_set(StoreKey key, std::uint64_t version,
                                               std::span<const std::byte> value,
                                               std::uint64_t ttl_ns = kNoExpiry);
  /// Reads, decides, and writes, with no other change of the key in between.
  [[nodiscard]] StoreOperation update(StoreKey key, StoreUpdater updater);
  /// Changes the time to live, not the value; only if the key is present.
  [[nodiscard]] StoreOperation expire(StoreKey key, std::uint64_t ttl_ns);
  /// Asks all remaining members how many keys they have: keys(). A member that died in the middle
  /// of an insert or erase may leave the count wrong by one.
  [[nodiscard]] StoreOperation count();
  /// Moves all keys of this member's part to the next home, while all members use them: this member
  /// is a client then, and may leave its group. Goes on if the operation is given up. With
  /// copies: 2, both copies move. `not_allowed`: the store evicts, or fewer other homes would be
  /// left than a key has copies.
  [[nodiscard]] StoreOperation leave();
  /// Moves half of one home's keys to this member, which contributes memory though keys are hashed
  /// to others, while all members use them. Goes on if the operation is given up. `not_allowed`:
  /// this member contributes none, or all homes have given keys.
  [[nodiscard]] StoreOperation take_keys();

  // --- the same with an operation of the caller's, which is given up if it is under way ----------
  void get(StoreOperation& operation, StoreKey key) noexcept;
  void put(StoreOperation& operation, StoreKey key, std::span<const std::byte> value,
           std::uint64_t ttl_ns = kNoExpiry) noexcept;
  void insert(StoreOperation& operation, StoreKey key, std::span<const std::byte> value,
              std::uint64_t ttl_ns = kNoExpiry) noexcept;
  void replace(StoreOperation& operation, StoreKey key, std::span<const std::byte> value,
               std::uint64_t ttl_ns = kNoExpiry) noexcept;
  void erase(StoreOperation& operation, StoreKey key) noexcept;
  void compare_and_set(StoreOperation& operation, StoreKey key, std::uint64_t version,
                       std::span<const std::byte> value, std::uint64_t ttl_ns = kNoExpiry) noexcept;
  void update(StoreOperation& operation, StoreKey key, StoreUpdater updater) noexcept;
  void expire(StoreOperation& operation, StoreKey key, std::uint64_t ttl_ns) noexcept;
  void leave(StoreOperation& operation) noexcept;
  void take_keys(StoreOperation& operation) noexcept;

  // --- many keys: StoreBatch (several calls at once), StoreScan (all members' entries) -----------
  /// Calls `see` for the entries of this member's part, each of which was there at some moment of
  /// the call; once for each key that stays during the call. `see` must not use the store.
  void for_each_local(const std::function<void(const StoreEntry& entry)>& see) const;

  // --- progress ----------------------------------------------------------------------------------
  std::size_t poll() { return progress().poll(); }
  [[nodiscard]] Waits waits() const { return progress().waits(); }
  [[nodiscard]] remote::Progress& progress() const noexcept;
  [[nodiscard]] Fabric& fabric() const noexcept { return progress().fabric(); }

  // --- figures -----------------------------------------------------------------------------------
  [[nodiscard]] Rank home_of(StoreKey key) const noexcept;
  [[nodiscard]] StoreStatistics statistics() const;
  /// The last member whose store was made with other options, which all must give alike, and what
  /// differs: a sentence, or nothing. Calls on its keys end with `refused`.
  [[nodiscard]] const std::string& why_refused() const noexcept;
  /// What this member knows and does of joins, leaves and moves of keys: one line for people who
  /// look for why such a call does not end.
  [[nodiscard]] std::string describe_moves() const;

  /// Changes StoreOptions::limit_bytes of this member. A lower limit is reached while poll()
  /// erases entries, if the store evicts; else slabs that are in use stay.
  void limit_memory(std::size_t bytes) noexcept;
  [[nodiscard]] std::size_t memory_limit() const noexcept;  // 0: all
  [[nodiscard]] Eviction eviction() const noexcept;

 private:
  friend class StoreOperation;
  friend class StoreBatch;
  friend class StoreScan;
  friend class StoreTransaction;
  std::unique_ptr<store::State> state_;
};

}  // namespace dunlin

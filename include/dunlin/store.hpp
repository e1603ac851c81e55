#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dunlin/remote.hpp>
#include <dunlin/store/batch.hpp>
#include <dunlin/store/key.hpp>
#include <dunlin/store/operation.hpp>
#include <dunlin/store/placement.hpp>
#include <dunlin/store/scan.hpp>
#include <dunlin/store/transaction.hpp>

/// A Store is a key-value store in the memory of the members of a fabric. Each member contributes
/// memory, a hash assigns each key to one member, and all members read and change all keys by
/// one-sided access: the member that holds a key takes no part. One thread uses a store, the one
/// that polls its fabric.
///
///     auto fabric = dunlin::join({.group = "rack7", .members = 2});
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
///  STO-5  A call on a key of which all members have failed ends with `lost`; in a store that
///         evicts, the key is absent.
///  STO-6  A location that is cached is never trusted: the entry decides.
///  STO-7  Transactions over several keys, and the calls that change one, are strictly
///         serializable.
///  STO-8  A transaction that was cut off by its member's death has happened at all remaining
///         homes, or at none, once they have asked each other.
///  STO-9  A commit that its caller has given up is completed, or has not happened at all.
///  STO-10 An index that grows hides no key, and shows none twice.
///  STO-M1 Keys that move are not lost, and calls on them go on.
///  STO-M9 With copies: 2, each key that moves is at two members at any time.
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

/// The channel for the messages of a Store with eviction, unless its options give another.
inline constexpr std::uint32_t kStoreChannel = kMaxChannels - 5;

inline constexpr std::size_t kDefaultLargeBytes = SIZE_MAX;
inline constexpr std::uint32_t kMaxStoreWeight = 1U << 20;

/// How a put ends that finds no room in its home's memory.
enum class Eviction : std::uint8_t {
  none,  // it ends with no_room
  lru    // the home erases keys that were not used for long, about in that order
};

/// Makes a cache for StoreOptions::shared_cache; 8 bytes hold the location of one key. Any
/// threads.
[[nodiscard]] std::shared_ptr<store::LocationCache> make_location_cache(std::size_t bytes);

struct StoreOptions {
  std::string name = "store";  // the same at all members
  /// Members with ranks below this hold keys, and the others are clients only; 0: all hold keys.
  /// All members give the same number.
  std::uint32_t homes = 0;
  /// For a member of a Group that is not one of the first holders: it contributes memory, too, and
  /// gets its share of the keys, without being asked. May differ.
  bool contributes = false;
  /// The memory that this member contributes, if it holds keys; may differ. The part that the index
  /// does not need holds entries. In a Group, a member's share of the keys is in proportion to its
  /// megabytes.
  std::size_t memory_bytes = 64 << 20;
  /// The part of memory_bytes that is reserved for entries of more than 32 KB; by default a
  /// quarter, and at most 16 MB.
  std::size_t large_bytes = kDefaultLargeBytes;
  /// The number of keys for which the member's index is laid out; 0: one for each 256 bytes of
  /// memory. With more keys, the index grows into the memory for entries, as long as the member
  /// polls.
  std::uint64_t expected_keys = 0;
  /// Keys are placed by their slots: a power of two, up to 16,384, and many times the number of
  /// members. All members give the same.
  std::uint32_t slots = 4096;
  /// How many members hold each key: 1 or 2; all members give the same number. With 2, a change has
  /// ended when it is at two homes, and no key is lost by one death. Not with eviction.
  std::uint32_t copies = 1;
  /// So many bytes of values a second, at most, this member copies to others that get keys; 0: no
  /// limit.
  std::uint64_t move_bytes_per_second = 0;
  /// The size of this process's location cache; 0: none. 8 bytes hold the location of one key.
  std::size_t cache_bytes = 1 << 20;
  /// A location cache in place of the store's own, which several stores of this process share, each
  /// with its thread and its attachment to the same members. Null: none.
  std::shared_ptr<store::LocationCache> shared_cache = nullptr;
  /// All members give the same value. With eviction, keys vanish that no member has erased.
  Eviction eviction = Eviction::none;
  /// The part of this member's memory that may hold entries, in whole slabs of 64 KB; 0: all.
  /// limit_memory() changes it.
  std::size_t limit_bytes = 0;
  /// With eviction: a change ends with no_room after it has waited so long for room in all.
  std::uint64_t wait_for_room_ns = 1'000'000'000;
  /// With eviction: the channel of the store's messages. Two such stores on one fabric have
  /// different ones.
  std::uint32_t channel = kStoreChannel;
};

/// Figures of a member's own part, which it has without asking others; with copies: 2, second
/// copies count, too.
struct StoreStatistics {
  std::uint64_t keys = 0;
  std::uint64_t value_bytes = 0;
  std::uint64_t memory_bytes = 0, memory_used = 0;  // without what the limit keeps unused
  std::uint64_t memory_held = 0;                    // in slabs that members have, used or not
  std::uint64_t evictions = 0;                      // keys of this member that it evicted
  std::uint64_t main_slots = 0;                     // places for keys in the index's main headers
  bool copies_complete = true;  // whether all keys that this member holds first have a copy
  [[nodiscard]] double occupancy() const noexcept {
    return main_slots == 0 ? 0 : static_cast<double>(keys) / static_cast<double>(main_slots);
  }
};

class Store {
 public:
  /// The store stops when any member fails. Does not wait for the others' stores; operations do.
  /// Throws Error.
  explicit Store(Fabric& fabric, StoreOptions options = {});
  /// The store goes on as the membership of `progress` does. The progress must outlive the store.
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
  /// Inserts the key only if it is absent; changed() says whether it was.
  [[nodiscard]] StoreOperation insert(StoreKey key, std::span<const std::byte> value,
                                      std::uint64_t ttl_ns = kNoExpiry);
  /// Changes the value only if the key is present.
  [[nodiscard]] StoreOperation replace(StoreKey key, std::span<const std::byte> value,
                                       std::uint64_t ttl_ns = kNoExpiry);
  [[nodiscard]] StoreOperation erase(StoreKey key);
  /// Changes the value only if the key has this version; 0: only if it is absent.
  [[nodiscard]] StoreOperation compare_and_set(StoreKey key, std::uint64_t version,
                                               std::span<const std::byte> value,
                                               std::uint64_t ttl_ns = kNoExpiry);
  /// Reads the key, asks `updater`, and writes, with no other change of the key in between.
  [[nodiscard]] StoreOperation update(StoreKey key, StoreUpdater updater);
  /// Changes the time to live, not the value; only if the key is present.
  [[nodiscard]] StoreOperation expire(StoreKey key, std::uint64_t ttl_ns);
  /// Asks all remaining members how many keys they have: keys(). A member that died in the middle
  /// of an insert or erase may leave the count wrong by one.
  [[nodiscard]] StoreOperation count();
  /// Moves all keys of this member's part to others, while all members use them: after that, this
  /// member is a client, and may leave its group. The move goes on if the operation is given up.
  /// `not_allowed`: this member holds no keys, its members are a fixed list, fewer other holders
  /// would be left than a key has copies, or set_weight() has taken it back. `no_room`: no other
  /// one has room.
  [[nodiscard]] StoreOperation leave();
  /// Waits until nothing moves and nothing is left to move: each member that holds keys has its
  /// share, and each key its copies, as far as there are members and room for them.
  [[nodiscard]] StoreOperation settle();

  // --- one key, by an operation of the caller's, which is given up if it is under way ------------
  void get(StoreOperation& operation, StoreKey key);
  void put(StoreOperation& operation, StoreKey key, std::span<const std::byte> value,
           std::uint64_t ttl_ns = kNoExpiry);
  void insert(StoreOperation& operation, StoreKey key, std::span<const std::byte> value,
              std::uint64_t ttl_ns = kNoExpiry);
  void replace(StoreOperation& operation, StoreKey key, std::span<const std::byte> value,
               std::uint64_t ttl_ns = kNoExpiry);
  void erase(StoreOperation& operation, StoreKey key);
  void compare_and_set(StoreOperation& operation, StoreKey key, std::uint64_t version,
                       std::span<const std::byte> value, std::uint64_t ttl_ns = kNoExpiry);
  void update(StoreOperation& operation, StoreKey key, StoreUpdater updater);
  void expire(StoreOperation& operation, StoreKey key, std::uint64_t ttl_ns);
  void leave(StoreOperation& operation);
  void settle(StoreOperation& operation);

  // --- many keys: StoreBatch (several calls at once), StoreScan (all members' entries) -----------
  /// Calls `see` for the entries of this member's part, each of which was there at some moment of
  /// the call; a key that stays during the call is visited once. `see` must not use the store.
  void for_each_local(const std::function<void(const StoreEntry& entry)>& see) const;

  // --- progress ----------------------------------------------------------------------------------
  std::size_t poll() { return progress().poll(); }
  [[nodiscard]] Waits waits() const { return progress().waits(); }
  [[nodiscard]] remote::Progress& progress() const noexcept;
  [[nodiscard]] Fabric& fabric() const noexcept { return progress().fabric(); }

  // --- figures -----------------------------------------------------------------------------------
  /// The member that owns the key's slot; kNoOwner if the slot is lost. Requires that the members
  /// have made the map: that a call has ended, for example.
  [[nodiscard]] Rank home_of(StoreKey key) const noexcept;
  [[nodiscard]] StorePlacement placement() const;
  /// From now on this member's share of the keys is in proportion to this number, which is the
  /// number of its megabytes at first; 0: it drains, and is a client after that. Up to
  /// kMaxStoreWeight. Without effect at a member that contributes no memory, or of a fixed list.
  void set_weight(std::uint32_t weight);
  [[nodiscard]] StoreStatistics statistics() const;
  /// What this process has counted, as `dunlin top` shows it: docs/top.md lists the names. Levels
  /// are those of the last look of poll(), which counts memory and slots piece by piece.
  [[nodiscard]] std::map<std::string, std::uint64_t> counters() const;
  /// A sentence that names the last member whose store has other options than ours, and what
  /// differs; empty: there is none. Calls on that member's keys end with `refused`.
  [[nodiscard]] const std::string& why_refused() const noexcept;
  /// What this member knows of where the keys are: one line for people who look for why a call does
  /// not end.
  [[nodiscard]] std::string describe_moves() const;

  /// Changes this member's StoreOptions::limit_bytes. If the store evicts, poll() erases entries
  /// until a lower limit is reached; otherwise slabs that are in use stay.
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

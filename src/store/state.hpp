#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/remote.hpp>
#include <dunlin/store.hpp>

#include "store/cache.hpp"
#include "store/call.hpp"
#include "store/change.hpp"
#include "store/counters.hpp"
#include "store/format.hpp"
#include "store/growth.hpp"
#include "store/held_chain.hpp"
#include "store/index_shape.hpp"
#include "store/leftovers.hpp"
#include "store/mover.hpp"
#include "store/reaper.hpp"
#include "store/routes.hpp"
#include "store/slot_placement.hpp"
#include "store/transaction.hpp"
#include "store/transaction_repair.hpp"

namespace dunlin::store {

/// A word of the own memory, for dunlin/fabric/memory.hpp.
[[nodiscard]] inline std::uint64_t& word_at(std::byte* at) noexcept {
  return *reinterpret_cast<std::uint64_t*>(at);
}

struct Room;

/// A home's memory, where it is mapped in this process (Fabric::reach).
struct MappedPart {
  std::span<std::byte> index;
  std::span<std::byte> small;
  std::span<std::byte> large;
  std::uint64_t found_in = UINT64_MAX;  // State::membership_stamp()
};

/// A key of a get before the look into its home's memory.
struct KnownKey {
  std::uint64_t hash = 0;
  std::uint64_t route = 0;
  const MappedPart* there = nullptr;  // of the owner, if the get may go there at once
  std::uint64_t location = 0;         // the word in the location cache; 0: none
};

struct State final : remote::Part {
  State(std::unique_ptr<remote::Progress> own, remote::Progress& progress, StoreOptions options);
  ~State() override;

  // --- calls on one key: lookup.cpp --------------------------------------------------------------
  void begin_get(StoreOperation& operation, StoreKey key);
  void begin_get(StoreOperation& operation, StoreKey key, const KnownKey& known);
  void prepare(CallResult& result, std::span<const std::byte> key);
  [[nodiscard]] KnownKey know(StoreKey key) noexcept;
  [[nodiscard]] std::span<const std::byte> main_of(const KnownKey& key) const noexcept;
  [[nodiscard]] KnownKey ask_for_place(StoreKey key) noexcept;
  void ask_for_entry(KnownKey& key) noexcept;
  [[nodiscard]] StoreOperation begin_read(StoreKey key, SeenChain& seen);
  [[nodiscard]] remote::Protocol<CallResult> get(Lookup at);
  [[nodiscard]] remote::Protocol<CallResult> read_chain(StoreKey key, SeenChain& seen);
  [[nodiscard]] remote::Protocol<remote::Status> retry(Lookup& at, remote::Status status,
                                                       Rest& rest);
  [[nodiscard]] CallResult got(Lookup& at) noexcept;
  void show_entry(Rank home, const EntryHead& head, CallResult& result) const noexcept;
  void remember(std::uint64_t hash, std::uint64_t word, const EntryHead& head) noexcept;
  void note_again(Lookup& at) noexcept;

  [[nodiscard]] remote::Status owner_of(Lookup& at) noexcept;
  [[nodiscard]] remote::Status why_closed(std::uint64_t word) const noexcept;
  [[nodiscard]] remote::Protocol<remote::Status> find_owner(Lookup& at);
  [[nodiscard]] remote::Protocol<remote::Status> find_index(Rank home);
  [[nodiscard]] remote::Protocol<remote::Status> outlive(const Lookup& at);

  [[nodiscard]] remote::Protocol<remote::Status> find(Lookup& at);
  // These do what find() and get() do, as plain functions, where the home's memory is mapped.
  [[nodiscard]] const MappedPart* mapped(Rank home) noexcept;
  /// As mapped(), if besides a call may go to the home at once.
  [[nodiscard]] const MappedPart* usable(Rank home) noexcept {
    Home& its = homes[home];
    return its.usable_in == membership_stamp() ? &its.mapped : find_usable(home);
  }
  [[nodiscard]] const MappedPart* find_usable(Rank home) noexcept;
  /// Rises with each change of who can be reached.
  [[nodiscard]] std::uint64_t membership_stamp() const noexcept {
    return fabric.disconnections() + progress.generation();
  }
  [[nodiscard]] remote::Status find_mapped(const MappedPart& there, Lookup& at) noexcept;
  void look_at_clock(const MappedPart& there, Rank home) noexcept;
  [[nodiscard]] Sight look_at_entry(const MappedPart& there, Lookup& at) noexcept;
  [[nodiscard]] remote::Status get_mapped(const MappedPart& there, Lookup& at) noexcept;
  [[nodiscard]] bool get_cached(const KnownKey& at, std::span<const std::byte> key,
                                CallResult& result) noexcept;
  [[nodiscard]] bool lock_mapped(const MappedPart& there, Lookup& at, HeldChain& chain) noexcept;
  [[nodiscard]] remote::Protocol<remote::Status> find_cached(Lookup& at, std::uint64_t word);
  [[nodiscard]] remote::Protocol<remote::Status> check_absence(Lookup& at);
  [[nodiscard]] remote::Batch<2, HomeGate> reading_bucket(Lookup& at, const Place& bucket,
                                                          std::size_t bytes) noexcept;
  [[nodiscard]] remote::Batch<2, HomeGate> reading_entry(Lookup& at) noexcept;
  void count_bucket(Lookup& at) noexcept;
  void count_entry(Lookup& at) noexcept;
  [[nodiscard]] remote::Status take_header(Lookup& at) noexcept;
  [[nodiscard]] bool has_left(const Lookup& at) const noexcept;
  [[nodiscard]] remote::Status follow(Lookup& at) noexcept;
  [[nodiscard]] HomeGate gate(Lookup& at) const noexcept {
    return {this, at.home, &at.result.round_trips};
  }
  [[nodiscard]] HeldMemory take_memory();

  // --- changes of one chain: change.cpp ----------------------------------------------------------
  [[nodiscard]] StoreOperation begin_change(Change one, StoreKey key,
                                            std::span<const std::byte> value);
  [[nodiscard]] remote::Protocol<CallResult> change(Change one, Lookup at, HeldChain chain);
  [[nodiscard]] bool change_at_once(Change& one, Lookup& at, HeldChain& chain);
  [[nodiscard]] remote::Status build(Change& one, Lookup& at, HeldChain& chain, ChangePlan& plan);
  static void build_unlock(const Change& one, const Lookup& at, HeldChain& chain,
                           const ChangePlan& plan) noexcept;
  void note_change(const Lookup& at, HeldChain& chain) noexcept;
  [[nodiscard]] remote::Protocol<remote::Status> commit(Lookup& at, HeldChain& chain);
  [[nodiscard]] remote::Protocol<remote::Status> change_chain(Change& one, Lookup& at,
                                                              HeldChain& chain);
  [[nodiscard]] remote::Protocol<remote::Status> lock(Lookup& at, HeldChain& chain,
                                                      std::uint64_t word, Patience patience = {});
  [[nodiscard]] remote::Protocol<remote::Status> unlock(Lookup& at, HeldChain& chain,
                                                        remote::Status end);
  [[nodiscard]] static Deed decide(Change& one, const Lookup& at,
                                   std::span<const std::byte>& value);
  void write_entry(const Change& one, Lookup& at, ChainBatch& batch,
                   std::span<const std::byte> value, std::uint64_t version) noexcept;
  [[nodiscard]] static bool fits_in_place(const Lookup& at, std::size_t bytes) noexcept;
  [[nodiscard]] bool put_in_place(const Change& one, Lookup& at, HeldChain& chain,
                                  std::span<const std::byte> value, std::uint64_t version) noexcept;
  void erase(const Change& one, Lookup& at, HeldChain& chain) noexcept;
  [[nodiscard]] remote::Protocol<remote::Status> find_blocks(Lookup& at, HeldChain& chain,
                                                             std::size_t bytes);
  [[nodiscard]] bool is_wanted(const Change& one, const Lookup& at) const noexcept;
  [[nodiscard]] Lookup look_at(const ChainCall& call);
  [[nodiscard]] remote::Protocol<remote::Status> lock_chain(const ChainCall& call, Lookup& at,
                                                            HeldChain& chain);
  [[nodiscard]] remote::Protocol<ChainResult> take_chain(ChainCall call);
  [[nodiscard]] remote::Protocol<ChainResult> raise_version(ChainCall call);
  [[nodiscard]] remote::Protocol<remote::Status> read_header(Lookup& at);
  [[nodiscard]] std::uint64_t end_of_chain(const Lookup& at) const noexcept;
  [[nodiscard]] remote::Protocol<remote::Status> hold(TransactionWrite& write, std::uint64_t word,
                                                      bool is_lent);
  [[nodiscard]] std::uint64_t next_lock_word() noexcept {
    return lock_word::make(fabric.rank(), ++serial);
  }

  // --- copies at other members: copies.cpp -------------------------------------------------------
  [[nodiscard]] remote::Protocol<remote::Status> replicate(Deed deed, Lookup& at, HeldChain& chain,
                                                           std::uint64_t version);
  [[nodiscard]] remote::Protocol<remote::Status> take_back(const Lookup& at, HeldChain& chain);
  [[nodiscard]] remote::Protocol<remote::Status> complete_with_copies(Deed deed, Lookup& at,
                                                                      HeldChain& chain,
                                                                      std::uint64_t version);
  [[nodiscard]] remote::Protocol<remote::Status> complete(std::shared_ptr<CopiedChange> work);
  [[nodiscard]] remote::Protocol<remote::Status> align_key(std::span<const std::byte> key);
  [[nodiscard]] Rank next_copy(const Lookup& at, Deed deed,
                               std::span<const Rank> done) const noexcept;
  [[nodiscard]] Copy copy_of(Deed deed, const Lookup& at, HeldChain& chain, std::uint64_t version,
                             Rank to) const noexcept;
  [[nodiscard]] remote::Protocol<remote::Status> copy_key(Copy copy);

  // --- other calls: operation.cpp ----------------------------------------------------------------
  [[nodiscard]] StoreOperation begin_count();
  [[nodiscard]] StoreOperation begin_leave();
  [[nodiscard]] StoreOperation begin_settle();
  [[nodiscard]] remote::Protocol<CallResult> count_keys();
  [[nodiscard]] remote::Protocol<CallResult> await_leave();
  [[nodiscard]] remote::Protocol<CallResult> await_settled();

  // --- where keys are: placement.cpp -------------------------------------------------------------
  [[nodiscard]] const SlotMap& map() const noexcept {
    return placement != nullptr ? placement->map() : fixed_map;
  }
  [[nodiscard]] const PlacedSlot& slot_of(std::uint64_t hash) const noexcept {
    return map().slot(map().slot_of(hash));
  }
  [[nodiscard]] bool is_owner(std::uint64_t hash) const noexcept {
    return route::owner(routes.of(hash)) == fabric.rank();
  }
  /// Whether what calls find of the key, or will find, is what is here: while a slot opens, its
  /// former owner may still align the new one.
  [[nodiscard]] bool has_what_counts(std::uint64_t hash) const noexcept {
    const PlacedSlot& slot = slot_of(hash);
    const bool is_handed_over = slot.settled || slot.former == kNobody;
    return (is_handed_over ? slot.owner : slot.former) == fabric.rank();
  }
  [[nodiscard]] std::string order_name() const;
  void open_map();
  /// Acts on what has changed in the map, and then tells the others that it knows it.
  std::size_t take_over_map();
  /// As all members agree; or its store has ended.
  [[nodiscard]] bool is_gone(Rank rank) const noexcept;
  /// The number of slots of which a member has keys, or may have some.
  [[nodiscard]] std::uint32_t slots_with_part_of(Rank rank) const noexcept;
  /// Whether each slot that this member owns is open and has all copies.
  [[nodiscard]] bool has_all_copies() const noexcept;
  /// Whether nothing moves, and nothing is to be moved.
  [[nodiscard]] bool is_settled() const;
  [[nodiscard]] std::uint32_t usual_weight() const noexcept;
  /// Whether a member that holds keys has no room for further slots.
  [[nodiscard]] bool some_are_full() const noexcept;
  struct Dropped {
    std::uint64_t keys = 0;
    std::uint64_t bytes = 0;
  };
  /// The own counters are corrected as soon as the fabric takes that.
  void lose_counts(const Dropped& dropped) noexcept;
  std::size_t correct_counts() noexcept;
  /// Takes the entries for which `goes` is true from a chain of the own part, under its lock.
  Dropped drop_entries(std::byte* main, const std::function<bool(std::uint64_t hash)>& goes);

  // --- room: room.cpp ------------------------------------------------------------------------
  void open_room();
  void take_message(Rank from, std::span<const std::byte> bytes);
  /// `ok`: it may still come; `no_room`: the call has waited for too long since it asked first.
  [[nodiscard]] remote::Status ask_for_room(Rank rank, bool is_large, std::uint32_t size_class,
                                            std::uint64_t& since_ns) noexcept;
  [[nodiscard]] static remote::Status status_without(const MissingBlock& missing) noexcept;
  [[nodiscard]] remote::Protocol<remote::Status> await_room(Lookup& at, HeldChain& chain);
  void mark(Rank home, std::uint64_t hash, std::uint64_t word) noexcept;
  /// A block of the home's memory. None: not yet; or, `is_full`, the home has none, and was asked
  /// for this size before. A cache uses no larger block than it needs: there will be one of the
  /// size.
  [[nodiscard]] std::optional<remote::SlabBlock> find_block(Rank home, bool is_large,
                                                            std::uint32_t size_class,
                                                            std::uint32_t& asked_for,
                                                            bool& is_full) noexcept;
  void limit_memory(std::size_t bytes) noexcept;

  // --- places ------------------------------------------------------------------------------------
  [[nodiscard]] remote::Status fault(Rank rank) const noexcept;
  [[nodiscard]] remote::SlabPool& pool_of(const Location& location) noexcept {
    return location.large ? *large : *small;
  }
  [[nodiscard]] RegionId region_of(const Place& place) const noexcept {
    return place.in_slabs ? small->region() : index.id();
  }
  /// Requires a number below that of the main headers that this process knows of the home.
  [[nodiscard]] Place main_header(Rank home, std::uint64_t number) const noexcept;
  // attachment.cpp
  [[nodiscard]] remote::Status know_index(Rank home) noexcept;
  /// The main header that got the position from `number`, as that one's depth says.
  std::uint64_t learn_split(Rank home, std::uint64_t position, std::uint64_t number,
                            std::uint32_t depth) noexcept;
  [[nodiscard]] bool take_header(Rank home, const std::byte* header) noexcept;
  void take_directory(Rank home) noexcept;

  // --- time --------------------------------------------------------------------------------------
  void sample_clock(Rank home, std::uint64_t clock) noexcept;
  void take_clock(Rank home, std::array<std::uint64_t, 4>& clock) noexcept;
  [[nodiscard]] bool wants_clock(Rank home) const noexcept;
  [[nodiscard]] std::uint64_t home_now_ns(Rank home) const noexcept;
  /// How long an entry with this expiry has to live; 0: it has expired.
  [[nodiscard]] std::uint64_t ttl_of(Rank home, std::uint64_t expiry_ns) const noexcept;
  void look_again_soon() noexcept;
  void begin_rest(Rest& rest) noexcept;
  [[nodiscard]] bool rests(Rest& rest) noexcept;

  // --- the own part: local.cpp, repair.cpp -------------------------------------------------------
  std::size_t poll_part() override;
  std::size_t do_duties();
  void members_changed() override;
  void repair_chain(std::byte* main) noexcept;
  void repair_slot(Rank owner, std::byte* slot, std::uint64_t& version) noexcept;
  /// The image of the redo record of that entry, or null.
  [[nodiscard]] const std::byte* redo_of(Rank owner, std::uint64_t word, const EntryHead& head,
                                         Image& image, std::size_t& bytes) noexcept;
  void free_later(const Location& location);
  [[nodiscard]] std::uint64_t own_count(std::uint64_t at) const noexcept;
  [[nodiscard]] StoreStatistics statistics() const;
  [[nodiscard]] StorePlacement summarize_map() const;
  [[nodiscard]] std::string describe_moves() const;
  [[nodiscard]] std::uint64_t evictions() const noexcept;
  [[nodiscard]] SharedCounter& counter_of(Kind kind) noexcept;
  void for_each_local(const std::function<void(const StoreEntry& entry)>& see);
  void see_bucket(const std::byte* main, const std::byte* bucket,
                  const std::function<void(const StoreEntry&)>& see);
  /// Of the own memory; null if there is none.
  [[nodiscard]] std::byte* own_entry(const Location& location) noexcept;
  [[nodiscard]] std::byte* own_bucket(std::uint64_t link) noexcept;
  [[nodiscard]] std::byte* own_main(std::uint64_t number) const noexcept;
  [[nodiscard]] std::uint64_t main_headers() const noexcept {
    return is_home ? homes[fabric.rank()].shape.headers() : 0;
  }

  // --- works -------------------------------------------------------------------------------------
  void release_record(ChainBatch& batch) noexcept;

  /// A look at the header and the directory of a home's index, for all calls that wait for it.
  struct IndexReading {
    enum class Stage : std::uint8_t { none, header, directory };
    Stage stage = Stage::none;
    std::uint64_t headers = 0;  // that the home has told of
    Image in;
    Completion done;
  };
  /// The knowledge of this process about a member that holds keys.
  struct Home {
    IndexShape shape;                    // at least; no main headers: not known yet
    std::vector<std::uint64_t> extents;  // offsets, of all main headers that are known
    std::uint64_t ranks = 0;             // that have redo records
    bool has_grown = false;              // there is a main header in an extent that is not known
    IndexReading reading;
    bool clock_known = false;
    std::int64_t clock_offset_ns = 0;  // the home's clock minus ours, at least
    std::uint64_t sampled_at_ns = 0;
    std::uint32_t records = 0;  // redo records in use, a bit for each
    MappedPart mapped;
    std::uint64_t usable_in = UINT64_MAX;  // membership_stamp()
    bool is_client = false;                // has no index
    bool withdrawn = false;
    bool refused = false;
  };

  void forget(Home& home) noexcept;

  std::unique_ptr<remote::Progress> own_progress;
  remote::Progress& progress;
  Fabric& fabric;
  StoreOptions options;
  std::uint32_t members = 0;  // those of lower ranks hold keys from the beginning
  std::uint32_t places = 0;   // ranks of those that may hold keys
  bool is_home = false;       // has an index, and memory for entries
  std::unique_ptr<remote::SlabPool> small;
  std::unique_ptr<remote::SlabPool> large;
  Region index;
  Region redo;
  std::unique_ptr<Room> room;                // of a store with eviction
  std::unique_ptr<Growth> growth;            // of a home
  std::unique_ptr<Mover> mover;              // of a home
  SlotMap fixed_map;                         // of members that stop when one dies
  std::unique_ptr<SlotPlacement> placement;  // of others
  std::uint64_t layout_hash = 0;  // of the options that all members give alike, and the name
  Routes routes;
  std::uint64_t map_taken_over = 0;  // its version, plus 1
  std::vector<Home> homes;
  std::string why_refused;
  [[nodiscard]] bool moves_keys() const noexcept { return progress.members().outlives_deaths(); }
  Subscription subscription;
  std::shared_ptr<LocationCache> held_cache;
  LocationCache& cache;  // of this store, or of several threads' stores
  std::uint64_t serial = 0;
  std::uint64_t incarnations = 0;
  Spares<CallMemory> spare_memory;
  Leftovers leftovers{*this};
  remote::Runs completing{progress};  // changes with copies
  Dropped uncounted;                  // the own counters still have them
  Completion counts_done;
  std::unique_ptr<Reaper> reaper;  // of a home
  Store* store = nullptr;
  std::uint64_t next_duty_ns = 0;
  StoreCounters counters{fabric, options.name, is_home};
  Transactions transactions{*this};
  TransactionRepair transaction_repair{*this};
};

}  // namespace dunlin::store

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <dunlin/remote.hpp>
#include <dunlin/store/transaction.hpp>

#include "store/call.hpp"
#include "store/change.hpp"
#include "store/format.hpp"
#include "store/held_chain.hpp"
#include "store/slot_map.hpp"

/// What a transaction is to do, and what its commit needs for that: it outlives the caller's object
/// if that gives up a commit which goes on.
namespace dunlin::store {

struct State;

/// A block of a home's memory that a commit needs.
struct WantedBlock {
  Rank home = 0;
  bool is_large = false;
  std::uint32_t size_class = 0;
  std::optional<remote::SlabBlock> block = std::nullopt;
  std::uint32_t asked_for = UINT32_MAX;  // as of State::find_block()
};

/// The key of a write: its chain, and the search in it.
struct HeldKey {
  HeldKey(State& state, Side side, StoreKey key) : at(state, side, key), lock(state) {}
  Lookup at;
  HeldChain lock;
  remote::Call<remote::Status> hold;
};

/// A key that is to change.
struct TransactionWrite {
  Kind kind = Kind::put;  // put, insert, erase
  std::uint64_t ttl_ns = kNoExpiry;
  std::uint64_t hash = 0;
  std::uint64_t route = 0;  // of its slot, as `home` was taken from it
  Rank home = 0;
  std::size_t key_bytes = 0;
  std::size_t value_bytes = 0;
  std::array<std::byte, kMaxStoreKeyBytes> key{};
  Image entry;                 // as it is to be
  std::vector<Place> vacants;  // slots of the chain

  TransactionWrite* first = nullptr;                   // of a copy: the write at the key's owner
  std::array<TransactionWrite*, kMaxCopies> copies{};  // of that one
  std::uint64_t expiry_ns = 0;                         // by the home's clock

  // These are the commit's.
  std::optional<HeldKey> held;
  WantedBlock entry_block;
  std::size_t chain = 0;
  Place slot;                     // that it has, or gets
  std::size_t bucket = SIZE_MAX;  // or the new bucket
  std::size_t bucket_slot = 0;
  std::uint64_t new_guard = 0;  // of the former entry
  Slot new_slot;

  [[nodiscard]] std::span<const std::byte> key_span() const noexcept {
    return {key.data(), key_bytes};
  }
  [[nodiscard]] bool puts() const noexcept { return kind != Kind::erase; }
  [[nodiscard]] bool is_copy() const noexcept { return first != nullptr; }
};

/// A chain that is locked; those of one home are neighbours.
struct TransactionChain {
  Rank home = 0;
  Place main;
  std::uint64_t seen_version = 0;
  std::uint64_t next_version = 0;  // of the keys whose owner's it is
  bool changes = false;
  std::array<std::uint64_t, 2> unlock{};  // version, lock
  std::size_t vacants_taken = 0;
  std::size_t last_bucket = SIZE_MAX;  // new one
};

/// An indirect header that a chain gets.
struct TransactionBucket {
  std::size_t chain = 0;
  Place link;                     // that will lead to it, unless `before` does
  std::size_t before = SIZE_MAX;  // the new bucket whose link leads to it
  WantedBlock header = {};
  std::size_t used = 0;
  std::uint64_t word = 0;
  Bucket image = {};
};

/// The part of one home.
struct TransactionShare {
  Rank home = 0;
  std::vector<Operation> prepare;
  std::vector<Operation> apply;
  std::span<const Operation> to_post;  // what is left of one of these
  bool is_lost = false;
  std::uint64_t prepared_word = 0;
  std::uint64_t committed_word = 0;
  std::uint64_t keys_added = 0;
  std::uint64_t bytes_added = 0;
  Image record;
  Completion done;
};

struct TransactionRead {
  StoreOperation operation;
  SeenChain seen;
  bool is_own = false;  // of a key that the transaction had changed itself
  bool to_validate = false;
  alignas(16) std::array<std::uint64_t, 2> words{};  // version, lock
};

struct TransactionWork {
  static constexpr std::size_t kNoRecord = SIZE_MAX;

  [[nodiscard]] auto all_reads() const noexcept { return std::span(reads).first(used_reads); }
  [[nodiscard]] auto all_shares() const noexcept { return std::span(shares).first(used_shares); }
  [[nodiscard]] TransactionWrite* find(StoreKey key) const noexcept;
  void clear() noexcept;

  // what is asked for
  remote::Status beyond = remote::Status::ok;  // what has a limit
  std::vector<std::unique_ptr<TransactionRead>> reads;
  std::vector<std::unique_ptr<TransactionWrite>> writes;
  std::size_t used_reads = 0;
  std::size_t used_writes = 0;

  // the commit's
  remote::Status outcome = remote::Status::ok;            // once it goes on without its caller
  std::vector<std::unique_ptr<TransactionWrite>> copies;  // at other members
  std::size_t used_copies = 0;
  std::vector<TransactionWrite*> order;  // all of both, by home and chain
  std::vector<TransactionChain> chains;
  std::vector<TransactionBucket> buckets;
  std::vector<WantedBlock> headers;  // for buckets, allocated before the chains are locked
  std::vector<std::unique_ptr<TransactionShare>> shares;
  std::size_t used_shares = 0;
  std::size_t decider = 0;  // a share
  std::uint64_t serial = 0;
  std::uint64_t lock_word = 0;
  std::size_t record = kNoRecord;
};

/// A commit that is under way.
///
/// Invariants:
///  1  Before post_entries() the homes have nothing of it but locks. Its destructor gives back the
///     locks, the blocks and the record.
///  2  From then on no caller gives it up (STO-9). It is destroyed before it has ended only if this
///     process is no member any more; the homes do the rest (STO-8).
class Commit {
 public:
  Commit(State& state, std::shared_ptr<TransactionWork> work);
  Commit(Commit&& other) noexcept = default;
  Commit& operator=(Commit&&) = delete;
  ~Commit();

  [[nodiscard]] remote::Progress& its_progress() const noexcept;
  [[nodiscard]] bool changes_nothing() const noexcept { return work_->order.empty(); }
  [[nodiscard]] bool is_at_one_home() const noexcept { return work_->used_shares == 1; }
  [[nodiscard]] bool is_decider_gone() const noexcept;

  /// From the gets to the point at which the transaction may happen: all locks are held, nothing
  /// that was read has changed, and there is room.
  [[nodiscard]] remote::Protocol<remote::Status> get_ready();

  // --- batches, for `co_await`; the result is `lost` if a home has failed ------------------------
  /// Posts what is left of each home's batch, and waits until all is placed.
  class [[nodiscard]] Posting final : public remote::Waiter {
   public:
    explicit Posting(Commit& commit) noexcept : commit_(commit) {}
    [[nodiscard]] bool ready() noexcept override;
    [[nodiscard]] remote::Status result() const noexcept;

   private:
    [[nodiscard]] bool post(TransactionShare& share) noexcept;
    Commit& commit_;
  };
  using PostingMark = remote::Batch<1, HomeGate>;
  /// Makes the batches of all homes.
  void build();
  /// The entries and a record at each home; if there is one home, the slots and the unlocking
  /// behind them.
  [[nodiscard]] Posting post_entries() noexcept;
  /// From the moment on at which the mark lands, the transaction has happened.
  [[nodiscard]] PostingMark post_mark() noexcept;
  /// The slots and the unlocking at all homes; with copies, but for the one with the first mark.
  [[nodiscard]] Posting post_slots() noexcept;
  [[nodiscard]] Posting post_slots_of_decider() noexcept;

  // --- ends --------------------------------------------------------------------------------------
  void give_locks_back() noexcept;
  /// The status of a commit that has changed nothing, because of `status`. With copies, waits until
  /// the members have agreed on deaths.
  [[nodiscard]] remote::Protocol<remote::Status> why_nothing_happens(remote::Status status);
  /// It has changed nothing, though the homes may have its entries.
  void failed(remote::Status status) noexcept;
  /// It has happened, or `lost`: no member can tell.
  void happened(remote::Status status) noexcept;

 private:
  /// Reads version and lock of the chains that the gets went through, but of those that are locked.
  class Validation final : public remote::Waiter {
   public:
    explicit Validation(Commit& commit) noexcept : commit_(commit) {}
    ~Validation() { commit_.fabric().abandon(done_); }
    [[nodiscard]] bool ready() noexcept override;
    [[nodiscard]] remote::Status result() const noexcept;

   private:
    [[nodiscard]] const TransactionChain* locked_chain(const SeenChain& seen) const noexcept;
    [[nodiscard]] Refusal post(TransactionRead& one) noexcept;

    Commit& commit_;
    Completion done_;
    std::size_t posted_ = 0;
    remote::Status status_ = remote::Status::ok;
  };

  [[nodiscard]] Fabric& fabric() const noexcept;

  // --- transaction_lock.cpp: the locks, and what has been read -----------------------------------
  [[nodiscard]] remote::Protocol<remote::Status> await_gets();
  [[nodiscard]] remote::Protocol<remote::Status> await_owners();
  void order_keys();
  void add_to_order(TransactionWrite& write);
  [[nodiscard]] TransactionWrite& copy_of(TransactionWrite& write);
  [[nodiscard]] remote::Protocol<remote::Status> find_room();
  [[nodiscard]] remote::Protocol<remote::Status> take_record();
  [[nodiscard]] remote::Protocol<remote::Status> lock_chains();
  void begin_hold(TransactionWrite& write, const TransactionWrite* before);
  [[nodiscard]] remote::Status hold_status() const noexcept;
  void note_chains();
  [[nodiscard]] remote::Protocol<remote::Status> validate();
  void begin_anew() noexcept;

  // --- transaction_commit.cpp: blocks and batches ------------------------------------------------
  void plan();
  [[nodiscard]] remote::Protocol<remote::Status> find_headers();
  [[nodiscard]] remote::Status no_room_at(Rank home);
  [[nodiscard]] bool find(WantedBlock& wanted, bool& is_full) noexcept;
  void add_share(Rank home);
  [[nodiscard]] TransactionShare& share_of(Rank home) const noexcept;
  void choose_versions() noexcept;
  [[nodiscard]] std::uint64_t expiry_of(const TransactionWrite& write) const noexcept;
  void build_entry(TransactionWrite& write);
  void build_buckets();
  void build_share(TransactionShare& share, std::size_t number);
  void build_unlocking(TransactionShare& share);
  [[nodiscard]] TransactionItem build_change(TransactionWrite& one, TransactionShare& share);

  // --- transaction_undo.cpp ----------------------------------------------------------------------
  [[nodiscard]] bool has_moved_keys() const noexcept;
  [[nodiscard]] bool awaits_decision() const noexcept;
  [[nodiscard]] bool is_over() const noexcept;
  [[nodiscard]] bool has_lost_a_key() const noexcept;
  [[nodiscard]] bool is_lost_at(Rank home) const noexcept;
  void pass_locks_on() noexcept;
  void give_blocks_back() noexcept;
  void give_back(WantedBlock& wanted) noexcept;
  void release_record() noexcept;

  State& state_;
  std::shared_ptr<TransactionWork> work_;  // null: it has been moved from
  bool is_posted_ = false;
  std::uint64_t room_since_ns_ = 0;  // waits for room; 0: not yet
  std::uint32_t round_trips_ = 0;
  Rest rest_;
};

/// The transactions of this process, and the records that it may use at the homes.
class Transactions {
 public:
  explicit Transactions(State& state) noexcept;
  [[nodiscard]] remote::Progress& its_progress() const noexcept;

  [[nodiscard]] std::shared_ptr<TransactionWork> take_work();
  /// Starts a get, which the work keeps.
  [[nodiscard]] StoreOperation& get(TransactionWork& work, StoreKey key);
  static void add(TransactionWork& work, Kind kind, StoreKey key, std::span<const std::byte> value,
                  std::uint64_t ttl_ns);
  [[nodiscard]] remote::Protocol<remote::Status> commit(std::shared_ptr<TransactionWork> work);

  /// None: all are in use.
  [[nodiscard]] std::optional<std::size_t> take_record() noexcept;
  void release_record(std::size_t record) noexcept;

  /// Goes on with the commits that may happen, or have happened; returns how much was done.
  std::size_t poll();
  [[nodiscard]] bool is_idle() const noexcept { return completing_.empty(); }
  /// This process is no member any more.
  void stop() noexcept;

 private:
  [[nodiscard]] CallResult own_value(TransactionWrite& write);
  [[nodiscard]] remote::Protocol<remote::Status> complete(Commit commit);

  State& state_;
  std::uint32_t records_ = 0;  // in use, a bit for each
  Spares<TransactionWork> spares_;
  remote::Runs completing_;
};

}  // namespace dunlin::store

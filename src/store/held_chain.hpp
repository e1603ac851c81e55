#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <dunlin/remote.hpp>

#include "store/call.hpp"
#include "store/change.hpp"
#include "store/format.hpp"
#include "store/slot_map.hpp"

namespace dunlin::store {

struct State;

/// The batch that changes a chain and unlocks it, and all that it is written from. The store keeps
/// it when its call is given up while a part of it is at the home.
struct ChainBatch {
  static constexpr std::size_t kMostSteps = 14;
  static constexpr std::size_t kNoRecord = SIZE_MAX;

  void add(const Operation& operation) noexcept;
  /// What is left to post.
  [[nodiscard]] std::span<const Operation> rest() const noexcept {
    return std::span(operations).first(steps).subspan(posted);
  }

  Rank home = 0;
  std::size_t redo_record = kNoRecord;
  Image entry;  // as it is to be
  Image redo;
  Bucket bucket;
  std::uint64_t link = 0;
  std::uint64_t guard = 0;                // that the former entry gets
  Slot slot;                              // that the key gets
  std::array<std::uint64_t, 2> unlock{};  // version, lock
  std::array<Operation, kMostSteps> operations;
  std::size_t steps = 0;
  std::size_t posted = 0;
  Completion done;
};

/// A block that a change has not found at the home.
struct MissingBlock {
  bool is_large = false;
  std::uint32_t size_class = 0;
  bool is_never_there = false;  // the home has none
};

/// A chain that a call locks, changes and unlocks, with the blocks, the redo record and the batch
/// of the change. Its destructor gives back what is held (REM-3, STO-4).
///
/// Invariants:
///  1  The lock word in the home's memory is this object's from the moment at which take() posts it
///     until the chain's batch has unlocked it, give_up() has, or the lock was passed on.
///  2  Blocks and record belong to `home`; no member finds a block before the batch links it.
///  3  Once the home has a part of the batch, or another member has the change, the batch is
///     completed, also if the call is given up. The lock goes with the batch then.
class HeldChain {
 public:
  explicit HeldChain(State& state) noexcept : state_(state) {}
  /// Nothing of the other one's is under way but its batch.
  HeldChain(HeldChain&& other) noexcept : state_(other.state_) { take_over(other); }
  HeldChain& operator=(HeldChain&& other) noexcept {
    give_up();
    take_over(other);
    return *this;
  }
  ~HeldChain() { give_up(); }

  [[nodiscard]] remote::Progress& its_progress() const noexcept;
  [[nodiscard]] Rank home() const noexcept { return home_; }
  [[nodiscard]] const Place& main() const noexcept { return main_; }
  [[nodiscard]] ChainBatch& batch();
  /// Is locked by this object, or for it.
  [[nodiscard]] bool is_held() const noexcept { return lock_ == Lock::held || lock_ == Lock::lent; }
  [[nodiscard]] bool is_lent() const noexcept { return lock_ == Lock::lent; }
  /// Whether the home may have a part of the batch.
  [[nodiscard]] bool is_posted() const noexcept { return batch_ != nullptr && batch_->posted > 0; }

  // --- the lock ----------------------------------------------------------------------------------
  /// The compare-and-swap that takes the lock with that word; `before` gets what was there.
  [[nodiscard]] Operation take(const Lookup& at, std::uint64_t word,
                               std::uint64_t& before) noexcept;
  void taken() noexcept { lock_ = Lock::held; }
  void not_taken() noexcept { lock_ = Lock::none; }
  /// The caller holds the lock with that word: it stays the caller's (`lent`), or is this object's
  /// to give back.
  void use_lock(const Lookup& at, std::uint64_t word, bool is_lent) noexcept;
  /// Somebody else gives the lock back.
  void pass_on() noexcept { lock_ = Lock::none; }
  /// The chain is not locked any more. Blocks stay, for another attempt.
  void unlocked() noexcept;

  // --- blocks ------------------------------------------------------------------------------------
  /// Allocates what a new entry of so many bytes needs. `ok`: it is there. `under_way`: ask again.
  /// `no_room`: the home has none.
  [[nodiscard]] remote::Status find_blocks(std::size_t bytes, bool wants_bucket) noexcept;
  /// The moment at which the call began to wait for room; 0: it has not.
  [[nodiscard]] std::uint64_t& room_since_ns() noexcept { return room_since_ns_; }
  [[nodiscard]] const MissingBlock& missing() const noexcept { return missing_; }
  void take_block(const remote::SlabBlock& block) noexcept;
  void cancel_blocks() noexcept;

  // --- the batch; the entry's head and bytes are in batch().entry --------------------------------
  /// Whether the home has a redo record for this process, which is taken then.
  [[nodiscard]] bool take_record() noexcept;
  void build_in_place(const Lookup& at, std::size_t bytes) noexcept;
  void build_out_of_place(const Lookup& at, std::size_t bytes) noexcept;
  void build_erase(const Lookup& at) noexcept;
  /// The version that the chain gets, which is not 0; 0: it is not changed.
  void build_unlock(const Lookup& at, std::uint64_t version) noexcept;
  /// Forgets a batch of which nothing was posted.
  void drop_batch() noexcept;
  /// The change is at another member, too: a backup, or one that gets a copy.
  void copied(Rank to) noexcept;
  [[nodiscard]] std::span<const Rank> copies() const noexcept {
    return std::span(copied_to_).first(copies_);
  }
  [[nodiscard]] bool is_copied_to(Rank rank) const noexcept;
  /// Its home has failed, and the key has another one. The bytes in batch().entry stay.
  void begin_anew() noexcept;

  /// For `co_await`: posts the batch, and waits until it is placed. Each source stays until it is
  /// used, also if the call is given up.
  class [[nodiscard]] Commit final : public remote::Waiter {
   public:
    Commit(HeldChain& chain, std::uint32_t& round_trips) noexcept
        : chain_(chain), round_trips_(round_trips) {}
    [[nodiscard]] bool ready() noexcept override;
    /// `ok`: all is placed, and the chain is unlocked.
    [[nodiscard]] remote::Status result() noexcept;

   private:
    HeldChain& chain_;
    std::uint32_t& round_trips_;
    remote::Status status_ = remote::Status::ok;
  };

  /// Gives back what is held, as the destructor does.
  void give_up() noexcept;

 private:
  enum class Lock : std::uint8_t { none, taking, held, lent };

  [[nodiscard]] std::optional<remote::SlabBlock> block_for(bool is_large,
                                                           std::uint32_t size_class) noexcept;
  void take_over(HeldChain& other) noexcept;
  void must_complete() noexcept;
  void fill_head(std::uint64_t incarnation, const Location& location) noexcept;
  void release_record() noexcept;

  State& state_;
  Rank home_ = 0;
  Place main_;
  std::uint64_t word_ = 0;
  Lock lock_ = Lock::none;
  bool must_complete_ = false;
  std::array<Rank, kMaxCopies + 1> copied_to_{};
  std::size_t copies_ = 0;  // of these
  bool entry_is_large_ = false;
  std::optional<remote::SlabBlock> entry_block_;
  std::optional<remote::SlabBlock> bucket_block_;
  MissingBlock missing_;
  std::uint64_t room_since_ns_ = 0;
  std::uint32_t asked_for_ = UINT32_MAX;  // the size class that was not there
  std::unique_ptr<ChainBatch> batch_;
};

/// A change of a slot that has copies, from the moment on at which it is prepared: its caller may
/// give up then.
struct CopiedChange {
  Deed deed = Deed::keep;
  std::uint64_t version = 0;
  Lookup at;
  HeldChain chain;
  remote::Status status = remote::Status::under_way;
};

}  // namespace dunlin::store

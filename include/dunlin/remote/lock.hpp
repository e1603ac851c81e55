#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <dunlin/fabric.hpp>
#include <dunlin/limits.hpp>
#include <dunlin/remote/progress.hpp>

/// Locks are 64-bit words in remote memory. A member takes one with a compare-and-swap; a waiter
/// watches a word of its own memory, into which its predecessor writes. One thread uses a Locks,
/// the one that polls; a lock belongs to the process, not to a thread or coroutine.
///
/// Invariants (docs/remote.md explains and proves them):
///  REM-8   At most one member holds a lock.
///  REM-9   Waiters get it in the order in which they entered its queue, by successful
///          compare-and-swaps; those behind a dead member keep their order, too.
///  REM-10  A waiter posts nothing while it waits.
///  REM-11  When a member that holds it, or waits for it, is out of the membership, the lock goes
///          to the next waiter, but not before every member has expelled the dead one.
///  REM-12  A member that gets a lock whose holder died is told so.
namespace dunlin::remote {

struct LocksOptions {
  std::string name;  // the same at all members
  RegionId words;    // the region in which the lock words are; each word is 0 at first
  std::span<std::byte> own_words;  // this process's part of the region
  std::uint32_t channel = kLockChannel;
};

/// An acquisition of a lock: waiting, held, or being handed on.
struct LockNode {
  std::uint32_t index = UINT32_MAX;
  [[nodiscard]] bool valid() const noexcept { return index != UINT32_MAX; }
};

/// An acquisition of a lock as an observer sees it.
struct LockView {
  Rank home;
  std::uint64_t offset;
  std::uint32_t ticket;  // members that wait for one lock get it in this order
  bool held;             // false: waited for
};

class Locks final : public Part {
 public:
  enum class Answer : std::uint8_t { waiting, held, busy, lost };

  /// All members make a Locks over the same region. Throws Error.
  Locks(Progress& progress, LocksOptions options);
  ~Locks() override;

  /// Enters the queue of the lock at `offset` of the home's part. With `only_if_free`, a lock that
  /// is taken refuses (`busy`) instead. The result is invalid if all kMaxLockNodes are in use: try
  /// again later.
  [[nodiscard]] LockNode acquire(Rank home, std::uint64_t offset, bool only_if_free) noexcept;
  [[nodiscard]] Answer answer(LockNode node) const noexcept;
  /// Whether the lock was handed over from a member that died while it held the lock (REM-12).
  [[nodiscard]] bool recovered(LockNode node) const noexcept;
  /// Sets whether the next holders are told that the lock was recovered: false once the data under
  /// the lock is repaired; true if the holder here gave up in the middle of a change.
  void set_recovered(LockNode node, bool whether) noexcept;
  /// Says that operations that the holder abandoned may be under way to this member, too: no member
  /// gets the lock before they have landed. `offset` is that of a word in the same region, which
  /// only atomics and writes change.
  void settle_also(LockNode node, Rank member, std::uint64_t offset) noexcept;
  /// Gives back the lock, or the place in its queue; the caller must not use the node again.
  void release(LockNode node) noexcept;
  /// Whether no acquisition of this process, past or present, can touch that word any more.
  [[nodiscard]] bool idle(Rank home, std::uint64_t offset) const noexcept;

  // --- where the lock's word is mapped here (Fabric::reach) --------------------------------------
  /// Takes a free lock whose last holder has not died, and returns what its word is then; 0: that
  /// needs acquire(). The caller gives it to leave() or keep() before it calls anything else here.
  [[nodiscard]] std::uint64_t enter(std::byte* word) noexcept;
  void leave(std::byte* word, std::uint64_t entered, Rank home, std::uint64_t offset) noexcept;
  [[nodiscard]] LockNode keep(std::uint64_t entered, Rank home, std::uint64_t offset) noexcept;

  /// Moves the lock: the memory with its word is gone, and the copy's word replaces it. All members
  /// that use the lock call this, inside members_changed(), so that the queue is repaired at its
  /// new home. The holder keeps the lock.
  void relocate(Rank old_home, std::uint64_t old_offset, Rank home, std::uint64_t offset) noexcept;

  /// Keeps the nodes that have yet to enter the queue of a relocated lock from its word, which the
  /// new home may not have; and lets them go on, or have lost it.
  void park(Rank home, std::uint64_t offset) noexcept;
  void unpark(Rank home, std::uint64_t offset, bool exists) noexcept;

  /// Whether an operation that this process abandoned under that lock may still be under way.
  [[nodiscard]] bool settling(Rank home, std::uint64_t offset) const noexcept;

  // --- at the home -------------------------------------------------------------------------------
  /// Makes the word at this offset of the own part a lock from now on; the word must be 0.
  void manage(std::uint64_t offset);
  /// Ends the lock at this offset: no member uses it any more.
  void forget(std::uint64_t offset) noexcept;

  /// Visits the acquisitions of this process that are in a queue: for observers.
  template <class Look>
  void each(Look&& look) const {
    for (std::size_t i = 0; i < active(); ++i)
      if (const LockView seen = view(i); seen.ticket != 0) look(seen);
  }
  /// Whether locks are not handed over, because the members agree on the members of each queue.
  [[nodiscard]] bool repairing() const noexcept;
  /// Whether this process knows that the member has a part in these locks (REM-18). A founder has;
  /// one that came later has once the others have admitted it, and its calls wait for that.
  [[nodiscard]] bool takes_part(Rank rank) const noexcept;

  std::size_t poll_part() override;
  void members_changed() override;

 private:
  [[nodiscard]] std::size_t active() const noexcept;
  [[nodiscard]] LockView view(std::size_t active) const noexcept;

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dunlin::remote

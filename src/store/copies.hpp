#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <dunlin/remote.hpp>
#include <dunlin/store/operation.hpp>

#include "store/work.hpp"

/// A home's work after deaths, and while another home leaves, in a store with two copies of each
/// key (docs/store.md, STO-C1 to STO-C4, STO-M9): it serves the keys of which it has become the
/// first home, once all members know of the death, and makes the copies that are missing.
namespace dunlin::store {

struct State;

class Copies {
 public:
  explicit Copies(State& state);
  ~Copies();
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  void members_changed();
  /// A home leaves, and all members know that: makes the copies that are missing without it. Each
  /// round once.
  void make_further(Rank leaves, std::uint64_t round);
  /// Some chains of this home have departed, and since then the members have changed; all homes
  /// have made copies again.
  void tell_of_departing();
  /// All keys of that home are at others now.
  void look_at_departed(Rank home);
  std::size_t poll();
  /// The generation of the members in which this home serves keys of others.
  [[nodiscard]] std::uint64_t opened() const noexcept { return opened_; }
  /// Whether this home is the first one of the key.
  [[nodiscard]] bool serves(std::uint64_t hash) const noexcept;
  /// Whether each key that this home holds first has a second copy.
  [[nodiscard]] bool complete() const noexcept { return is_complete_ && !has_skipped_; }

 private:
  static constexpr std::size_t kLanes = 16;
  /// A chain, and the lock that was seen there: another word there means that its holder has done.
  struct Held {
    std::uint64_t number = 0;
    std::uint64_t lock = 0;
  };
  /// The versions of the chains at another home that have positions of one here.
  struct Raise {
    std::uint64_t position = 0, end = 0;
    std::uint64_t version = 0;
    Rank to = 0;
  };
  /// Of one chain at a time.
  struct Lane {
    std::vector<std::vector<std::byte>> keys;
    Raise raise;
    std::unique_ptr<StoreOperation> operation;
    bool under_way = false;
    bool is_stale = false;  // was begun for a former reason
    [[nodiscard]] bool raises() const noexcept { return raise.position < raise.end; }
  };

  std::size_t open();
  [[nodiscard]] bool waits_for_prepared();
  [[nodiscard]] std::uint64_t lock_of(std::uint64_t number) const noexcept;
  void begin_restoring() noexcept;
  std::size_t restore();
  void begin_next(Lane& lane);
  void end_of(Lane& lane) noexcept;
  [[nodiscard]] bool raise_next(Lane& lane) noexcept;
  [[nodiscard]] bool makes_copies(const CopyHomes& to) const noexcept;
  [[nodiscard]] CopyHomes homes_with_all(CopyHomes behind) const noexcept;
  [[nodiscard]] bool tell_other_homes();
  void publish_ready(std::uint64_t word) noexcept;
  void try_later(std::uint64_t ns) noexcept;
  bool collect_next(Lane& lane);
  void collect(Lane& lane, std::uint64_t number);

  State& state_;
  std::uint64_t opened_ = 0;
  // which members know of the death
  Rank asks_ = 0;
  bool has_asked_ = false;
  std::uint64_t word_ = 0;
  bool has_looked_at_locks_ = false;
  std::vector<Held> prepared_;  // by transactions that may have happened
  Completion done_;
  std::uint64_t not_before_ns_ = 0;
  // second copies
  bool is_complete_ = false;
  bool only_further_ = false;
  bool has_failed_ = false, has_no_room_ = false;
  Rank leaves_ = 0;             // the home for whose leave further ones are made
  std::uint64_t round_ = 0;     // likewise; 0: none leaves
  std::uint64_t number_ = 0;    // of the next main header
  std::vector<Held> held_;      // of those before it, when it was their turn
  bool raises_ = false;         // all keys have their copies
  std::uint64_t raise_at_ = 0;  // position
  std::size_t raised_ = 0;      // of the homes behind this one
  Rank told_ = 0;
  bool tells_of_departing_ = false, has_skipped_ = false;
  std::uint64_t covered_ = 0;
  std::array<Lane, kLanes> lanes_;
};

}  // namespace dunlin::store

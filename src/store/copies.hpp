#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <dunlin/remote.hpp>
#include <dunlin/store/operation.hpp>

#include "store/change.hpp"
#include "store/format.hpp"
#include "store/key_homes.hpp"
#include "store/raises.hpp"
#include "store/rescue.hpp"

/// A home's work after deaths, in a store with two copies of each key (docs/store.md, STO-C1 to
/// STO-C4): it serves the keys of which it has become the first home, once all members know of the
/// death, and makes the second copies that are missing.
namespace dunlin::store {

struct State;

class Copies {
 public:
  explicit Copies(State& state);
  ~Copies();
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  void members_changed();
  std::size_t poll();
  /// The generation of the members in which this home serves keys of others.
  [[nodiscard]] std::uint64_t opened() const noexcept { return opened_; }
  /// Whether each key that this home holds first has a second copy.
  [[nodiscard]] bool complete() const noexcept;
  /// Whether it has tried, and a home has no room.
  [[nodiscard]] bool lacks_room() const noexcept;

 private:
  static constexpr std::size_t kLanes = 16;
  /// A chain, and the lock that was seen there: another word there means that its holder has done.
  struct Held {
    std::uint64_t number = 0;
    std::uint64_t lock = 0;
  };
  /// No version of the chain is given again at the second home (STO-M3).
  struct Raise {
    Rank to = 0;
    std::uint64_t from = 0;
    std::uint64_t below = 0;
    std::uint64_t version = 0;
  };
  /// Of one chain at a time.
  struct Lane {
    std::vector<std::vector<std::byte>> keys;
    std::vector<Raise> raises;  // after the keys
    bool is_raising = false;
    StoreOperation restoring;
    remote::Call<ChainResult> raising;
    bool under_way = false;
  };

  std::size_t open();
  [[nodiscard]] bool all_know(bool that_have_given);
  [[nodiscard]] bool know_places();
  [[nodiscard]] bool waits_for_prepared();
  [[nodiscard]] std::uint64_t lock_of(std::uint64_t number) const noexcept;
  std::size_t restore();
  [[nodiscard]] bool tell_second_homes();
  void try_later(std::uint64_t ns) noexcept;
  bool collect_next(Lane& lane);
  void collect(Lane& lane, std::uint64_t number);
  void begin_next(Lane& lane);
  void end(Lane& lane);

  State& state_;
  std::uint64_t opened_ = 0;
  // which members know of the death
  Rank asks_ = 0;
  bool has_asked_ = false;
  std::array<std::uint64_t, (kIndexHeaderBytes - kDrainedAt) / kWordBytes> words_{};
  bool has_given_ = false;
  bool rescues_ = false;
  Rescue rescue_;
  bool has_looked_at_locks_ = false;
  std::vector<Held> prepared_;  // by transactions that may have happened
  Completion done_;
  std::uint64_t not_before_ns_ = 0;
  // second copies
  bool is_complete_ = false;
  std::uint64_t complete_in_ = 0;  // generation
  std::vector<KeyGroup> groups_;   // that this home serves, in this generation
  bool has_failed_ = false;
  bool lacks_room_ = false;
  std::uint64_t number_ = 0;  // of the next main header
  std::vector<Held> held_;    // of those before it, when it was their turn
  bool tells_ = false;
  Raises raises_;
  std::array<Lane, kLanes> lanes_;
};

}  // namespace dunlin::store

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dunlin/remote.hpp>
#include <dunlin/store/operation.hpp>

#include "store/change.hpp"
#include "store/plan.hpp"

/// What a member that holds keys does for the slot map, in its own memory, while all members use
/// the keys: it copies slots to the members that get a copy, opens those of which it has become
/// the owner, and empties those that it holds no more. It says each end to the map.
///
/// Before each of these it waits until all members act on the map that asks for it. So:
///  STO-P8  At most one member is asked for a slot's keys, and changes go to all that have a copy
///          or get one: a call looks at the map under the lock of the key's chain.
///  STO-P9  A copy that is full has all that its owner had: what was under way before, held the
///          lock of its chain, for which the copying waits.
///  STO-P10 A slot's owner is open once no member asks the former one any more, and no chain
///          there is locked by a call that does.
namespace dunlin::store {

struct State;

class Mover {
 public:
  explicit Mover(State& state);
  ~Mover();
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;
  [[nodiscard]] remote::Progress& its_progress() const noexcept;

  /// The map has changed.
  void look_at_map();
  /// A death has cut off a change of that chain, which some copies may have: they get what is here,
  /// before any of them becomes the owner (STO-C1).
  void align(std::uint64_t number);
  std::size_t poll();
  /// What is left for it to do, for people to read.
  [[nodiscard]] std::string describe() const;

 private:
  static constexpr std::size_t kLanes = 16;
  /// What is to be said of each slot when it is true.
  using Jobs = std::vector<Decision>;
  /// For each slot, the epoch for which something has been said.
  using Said = std::vector<std::uint32_t>;
  /// A chain that was locked.
  struct Locked {
    std::uint64_t number = 0;
    std::uint64_t word = 0;
  };
  /// Keys, or versions of chains, that are copied at the same time as others.
  struct Lane {
    StoreOperation copying;
    remote::Call<ChainResult> raising;
    std::uint32_t slot = 0;  // of the key
    Rank to = kNobody;       // of the versions
    [[nodiscard]] bool finished() const noexcept {
      return copying.finished() && raising.finished();
    }
  };

  // --- three protocols that never end ------------------------------------------------------------
  [[nodiscard]] remote::Protocol<remote::Status> copy_slots();
  [[nodiscard]] remote::Protocol<remote::Status> open_slots();
  [[nodiscard]] remote::Protocol<remote::Status> empty_slots();

  [[nodiscard]] remote::Protocol<remote::Status> align_chain(std::uint64_t number);
  [[nodiscard]] std::vector<Rank> copies() const;
  [[nodiscard]] bool is_owned(std::uint64_t hash) const noexcept;
  /// Until all members act on that version of the map, or a later one.
  [[nodiscard]] remote::Protocol<remote::Status> await_members(std::uint64_t version);
  [[nodiscard]] remote::Protocol<remote::Status> await_member(Rank rank, std::uint64_t version);
  [[nodiscard]] remote::Protocol<remote::Status> copy_chain(std::uint64_t number);
  [[nodiscard]] remote::Protocol<remote::Status> copy_key(std::span<const std::byte> key);
  [[nodiscard]] remote::Protocol<ChainResult> raise_versions(ChainCall call, std::uint64_t below);
  [[nodiscard]] remote::Protocol<remote::Status> raise_all_versions();
  [[nodiscard]] remote::Protocol<remote::Status> await_lane(std::size_t& lane);
  [[nodiscard]] remote::Protocol<remote::Status> await_lanes();
  [[nodiscard]] remote::Protocol<remote::Status> empty_chain(std::uint64_t number);
  /// Until each chain that is locked now has been unlocked.
  [[nodiscard]] remote::Protocol<remote::Status> await_locks();
  [[nodiscard]] std::uint64_t lock_of(std::uint64_t number) const noexcept;
  [[nodiscard]] bool is_unlocked(const Locked& one) const noexcept {
    return lock_of(one.number) != one.word;
  }
  [[nodiscard]] bool is_copied(std::uint64_t hash) const noexcept;
  void end(Lane& lane) noexcept;
  /// Says it of all slots that are still as they were.
  void say(const Jobs& jobs);

  State& state_;
  Jobs to_copy_, to_open_, to_empty_;  // as the map asks now, but for what has been said
  Said said_;
  Jobs copying_;
  std::vector<bool> moves_;   // by slot: it is copied
  std::vector<bool> failed_;  // by slot: not all of its keys were
  std::vector<bool> goes_;    // by slot: it is emptied
  std::array<Lane, kLanes> lanes_;
  std::uint64_t next_key_ns_ = 0;
  std::size_t aligning_ = 0;  // chains
  remote::Runs runs_;
};

}  // namespace dunlin::store

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <dunlin/remote.hpp>
#include <dunlin/store/operation.hpp>

#include "store/call.hpp"

/// A home's eviction from one of its pools: a clock whose hand goes over the blocks of all slabs,
/// and the moving of whole slabs between members and sizes (docs/store.md, STO-V1 to STO-V5). It
/// works only while a member wants room, in bounded steps.
namespace dunlin::store {

struct State;

class Evictor {
 public:
  Evictor(State& state, remote::SlabPool& pool, bool is_large);

  /// The member has no free block of that size, and waits for an answer.
  void want(Rank rank, std::uint32_t size_class);
  std::size_t poll();
  /// sweep << 32 | slab: how often the hand has been round, and where it is.
  [[nodiscard]] std::uint64_t hand() const noexcept { return sweep_ << 32 | slab_; }
  [[nodiscard]] std::uint64_t evicted() const noexcept { return evicted_; }

 private:
  static constexpr std::size_t kOperations = 16;

  struct Want {
    Rank rank = 0;
    std::uint32_t size_class = 0;
    std::uint64_t asked_at_ns = 0;
  };
  struct Freed {
    std::uint32_t slab = 0;
    std::size_t blocks = 0;
  };
  /// The contents of the slabs, as a member that wants room sees them.
  struct Survey {
    std::vector<std::uint32_t> hints;  // with room for it
    std::size_t free_bytes = 0;        // in slabs that are held
    std::size_t held = 0;              // slabs
    std::size_t held_by_it = 0;        // likewise, of that size
    bool may_move = false;             // one of the others
  };
  /// A slab that is to be given back.
  struct Victim {
    std::uint32_t slab = 0;
    remote::SlabHolder holder;
    std::uint64_t since_ns = 0;  // since something there was evicted
    std::uint64_t ask_at_ns = 0;
    std::size_t next = 0;  // block
  };
  struct Eviction {
    StoreOperation operation;
    std::uint32_t slab = 0;
    std::size_t block_bytes = 0;
    bool under_way = false;
  };

  [[nodiscard]] bool is_pinned(const remote::SlabHolder& holder) const noexcept;
  [[nodiscard]] std::size_t live_blocks(std::uint32_t slab) const noexcept;
  [[nodiscard]] std::size_t marked_blocks(std::uint32_t slab) const noexcept;
  [[nodiscard]] Survey survey(const Want& want);
  std::size_t serve();
  void answer(const Want& want, const std::vector<std::uint32_t>& hints);
  std::size_t shrink();
  void choose(const std::optional<Want>& want);
  std::size_t empty_victim();
  std::size_t move_hand();
  void next_slab() noexcept;
  bool evict(std::uint32_t slab, std::uint32_t size_class, std::size_t number);
  std::size_t collect() noexcept;
  void count(Eviction& eviction) noexcept;
  [[nodiscard]] Eviction* idle() noexcept;

  State& state_;
  remote::SlabPool& pool_;
  bool is_large_;
  std::deque<Want> wants_;
  std::array<Eviction, kOperations> evictions_;
  std::size_t under_way_ = 0;
  // the hand
  bool is_refilling_ = false;
  std::size_t refilled_bytes_ = 0;
  std::size_t refill_bytes_ = 0;
  std::size_t fruitless_slabs_ = 0;  // since something was evicted
  std::uint64_t sweep_ = 0;
  std::uint32_t slab_ = 0;
  std::size_t block_ = 0;
  // slabs that move
  std::optional<Victim> victim_;
  std::uint64_t moves_ = 0;
  std::vector<std::uint64_t> spared_until_;  // of each slab, in moves
  std::uint64_t evicted_ = 0;
  Image head_;
};

}  // namespace dunlin::store

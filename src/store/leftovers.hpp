#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <dunlin/remote.hpp>

#include "store/call.hpp"
#include "store/held_chain.hpp"

namespace dunlin::store {

struct State;

/// What calls leave behind that are given up: batches of which the homes have a part, locks, and
/// blocks. They are posted in the next polls. It also keeps the batches that are used again.
///
/// Invariant: a chain is not unlocked before each batch for its home has been posted.
class Leftovers {
 public:
  explicit Leftovers(State& state) noexcept : state_(state) {}
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;
  ~Leftovers();

  [[nodiscard]] std::unique_ptr<ChainBatch> take_batch() { return spare_batches_.take(); }
  /// Requires that nothing of the batch is under way.
  void give_back(std::unique_ptr<ChainBatch> batch);
  /// Posts the rest of the batch, which unlocks its chain.
  void complete(std::unique_ptr<ChainBatch> batch);
  /// Gives back the lock of a chain, which this process may have taken by that word.
  void unlock(Rank home, const Place& main, std::uint64_t word);
  void free(bool is_large, const remote::SlabBlock& block);

  /// Returns how much was posted.
  std::size_t post();
  /// Whether other members may wait for something that it has.
  [[nodiscard]] bool has_locks() const noexcept { return !batches_.empty() || !locks_.empty(); }

 private:
  struct Lock {
    Rank home;
    Place main;
    std::uint64_t word;
  };
  std::size_t post_batches();
  std::size_t post_unlocking();
  void post_frees(std::deque<remote::SlabBlock>& blocks, remote::SlabPool& pool);
  [[nodiscard]] bool is_settled(Rank home, Refusal refusal) const noexcept;

  State& state_;
  Spares<ChainBatch> spare_batches_;
  std::vector<std::unique_ptr<ChainBatch>> batches_;
  std::deque<Lock> locks_;
  std::deque<remote::SlabBlock> small_blocks_;
  std::deque<remote::SlabBlock> large_blocks_;
};

}  // namespace dunlin::store

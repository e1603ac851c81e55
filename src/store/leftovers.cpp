#include "store/leftovers.hpp"

#include <algorithm>
#include <utility>

#include "assert.hpp"
#include "store/state.hpp"

namespace dunlin::store {

using remote::Status;

Leftovers::~Leftovers() {
  for (const auto& batch : batches_) state_.fabric.abandon(batch->done);
}

void Leftovers::give_back(std::unique_ptr<ChainBatch> batch) {
  DUNLIN_ASSERT(batch->done.finished(), "REM-3: a batch under way is not used for another change");
  state_.release_record(*batch);
  batch->done.reset();
  batch->steps = batch->posted = 0;
  spare_batches_.give_back(std::move(batch));
}

void Leftovers::complete(std::unique_ptr<ChainBatch> batch) {
  batches_.push_back(std::move(batch));
  state_.look_again_soon();
}

void Leftovers::unlock(Rank home, const Place& main, std::uint64_t word) {
  locks_.push_back({home, main, word});
  state_.look_again_soon();
}

void Leftovers::free(bool is_large, const remote::SlabBlock& block) {
  (is_large ? large_blocks_ : small_blocks_).push_back(block);
}

/// Whether nothing is left to do: it has been posted, or never can be.
bool Leftovers::is_settled(Rank home, Refusal refusal) const noexcept {
  return refusal == Refusal::none || state_.fault(home) != Status::ok ||
         !remote::is_for_now(refusal);
}

std::size_t Leftovers::post() {
  const std::size_t done = post_batches() + post_unlocking();
  post_frees(small_blocks_, *state_.small);
  post_frees(large_blocks_, *state_.large);
  return done;
}

std::size_t Leftovers::post_batches() {
  std::size_t done = 0;
  for (std::size_t i = 0; i < batches_.size();) {
    ChainBatch& batch = *batches_[i];
    const Posted posted = state_.fabric.post(batch.rest());
    batch.posted += posted.accepted;
    done += posted.accepted;
    if (!posted.all() && is_settled(batch.home, posted.refusal)) {
      state_.fabric.abandon(batch.done);
    } else if (!posted.all() || !batch.done.finished()) {
      ++i;
      continue;
    }
    give_back(std::exchange(batches_[i], std::move(batches_.back())));
    batches_.pop_back();
  }
  return done;
}

std::size_t Leftovers::post_unlocking() {
  std::size_t done = 0;
  for (; !locks_.empty(); locks_.pop_front(), ++done) {
    const Lock& lock = locks_.front();
    const bool is_early = std::ranges::any_of(batches_, [&](const auto& batch) {
      return batch->home == lock.home && batch->posted < batch->steps;
    });
    if (is_early) break;
    const Operation swap = compare_swap(lock.home, state_.region_of(lock.main),
                                        lock.main.offset + kLockAt, lock.word, 0, nullptr);
    if (!is_settled(lock.home, state_.fabric.post(swap).refusal)) break;
  }
  return done;
}

void Leftovers::post_frees(std::deque<remote::SlabBlock>& blocks, remote::SlabPool& pool) {
  while (!blocks.empty() &&
         is_settled(blocks.front().home, state_.fabric.post(pool.free(blocks.front())).refusal))
    blocks.pop_front();
}

}  // namespace dunlin::store

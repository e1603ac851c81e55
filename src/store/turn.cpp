#include "store/turn.hpp"

#include <utility>

#include "store/state.hpp"

namespace dunlin::store {

using remote::Status;

void Turn::begin() noexcept {
  stop();
  asks_ = 0;
}

void Turn::stop() noexcept {
  state_.fabric.abandon(done_);
  done_.reset();
  has_posted_ = false;
}

Status Turn::step() noexcept {
  const Rank own = state_.fabric.rank();
  const auto word = [&](std::uint64_t at) { return words_.at((at - kDrainedAt) / kWordBytes); };
  for (;;) {
    if (!done_.finished()) return Status::under_way;
    const bool has_answer = std::exchange(has_posted_, false);
    if (has_answer && done_.failed()) return Status::busy;
    if (has_answer) {
      const std::uint64_t leaves = word(kLeaveAt);
      state_.learn_move(asks_, word(kMovedAt), leave_word::to(leaves));
      state_.learn_drained(asks_, word(kDrainedAt));
      const bool moves = (leaves & leave_word::kMoves) != 0;
      if (moves) return asks_ < own ? Status::conflict : Status::busy;
      ++asks_;
    }
    while (asks_ < state_.places && (asks_ == own || state_.progress.is_gone(asks_) ||
                                     !state_.fabric.connected(asks_, state_.index.id())))
      ++asks_;
    if (asks_ >= state_.places) return Status::ok;
    done_.reset();
    has_posted_ = state_.fabric
                      .post(read(asks_, state_.index.id(), kDrainedAt, words_.data(), sizeof words_)
                                .notify(done_))
                      .all();
    if (!has_posted_) return Status::busy;
  }
}

}  // namespace dunlin::store

#include "store/raises.hpp"

#include <algorithm>
#include <utility>

#include "store/state.hpp"

namespace dunlin::store {

using remote::Status;

void Raises::begin() noexcept {
  state_.fabric.abandon(done_);
  done_.reset();
  has_posted_ = false;
  all_.clear();
  waits_ = true;
  next_ = 0;
  known_ = 0;
}

std::optional<std::uint64_t> Raises::raised(const One& one, std::uint64_t word) noexcept {
  if (!one.is_interval && word >= one.below) return word;
  if (!one.is_interval && word < one.from) return std::nullopt;
  if (!one.is_interval) return one.below;
  const std::uint64_t from = covered_word::from(word), below = covered_word::below(word);
  if (below == 0) return covered_word::make(one.from, one.below);
  if (one.from > below || one.below < from) return std::nullopt;
  return covered_word::make(std::min(from, one.from), std::max(below, one.below));
}

/// One after the other, by compare-and-swap. The first attempt takes the word for 0, and so reads
/// it.
Status Raises::step() noexcept {
  for (; next_ < all_.size(); ++next_, known_ = 0) {
    const One& one = all_[next_];
    for (bool is_raised = one.below == 0; !is_raised;) {
      if (!done_.finished()) return Status::under_way;
      const bool has_answer = std::exchange(has_posted_, false);
      if (state_.is_gone(one.at)) break;
      if (has_answer && done_.failed()) return Status::busy;  // until the members agree
      if (has_answer) {
        const bool was_swapped = seen_ == known_;
        known_ = seen_;
        const auto becomes = raised(one, seen_);
        if (!becomes && !waits_) break;
        if (!becomes) {
          known_ = 0;
          return Status::busy;
        }
        if (was_swapped || *becomes == seen_) break;
      }
      done_.reset();
      // Where the word cannot be raised yet, nothing is swapped: the same for the same.
      const std::uint64_t becomes = raised(one, known_).value_or(known_);
      has_posted_ =
          state_.fabric
              .post(compare_swap(one.at, state_.redo.id(), one.offset, known_, becomes, &seen_)
                        .notify(done_))
              .all();
      if (!has_posted_) return Status::busy;
    }
    done_.reset();
  }
  return Status::ok;
}

}  // namespace dunlin::store

#pragma once

#include <algorithm>
#include <cstddef>

namespace dunlin {

/// Parts that are polled in one loop, of which most have nothing to do. Those that rest are looked
/// at in turn while others have work, some eight a poll, so that they cost these little. Once the
/// others find nothing for as many polls as a round of turns takes, poll() looks at all.
class Turns {
 public:
  /// A part that rests is looked at once in so many polls, at least and at most.
  static constexpr std::size_t kLeastRest = 8;
  static constexpr std::size_t kMostRest = 64;

  /// Of the parts from 0 to count() - 1; there may be more, or fewer, after each `poll(i)`, which
  /// returns how much it did. If it returns 0, this very poll has looked at all: nobody sleeps over
  /// what one of them has.
  template <class Count, class Rests, class Poll>
  std::size_t poll(const Count& count, const Rests& rests, const Poll& poll_one) {
    const std::size_t period = std::clamp(resting_ / kLeastRest, kLeastRest, kMostRest);
    ++polls_;
    std::size_t done = 0;
    std::size_t resting = 0;
    bool passed_over = false;
    for (std::size_t i = 0; i < count(); ++i) {
      const bool at_rest = busy_ && rests(i);
      resting += at_rest ? 1 : 0;
      if (at_rest && (i + polls_) % period != 0)
        passed_over = true;
      else
        done += poll_one(i);
    }
    resting_ = resting;
    fruitless_ = done > 0 ? 0 : fruitless_ + 1;
    if (done == 0 && passed_over) {
      if (fruitless_ < period) return 1;
      for (std::size_t i = 0; i < count(); ++i) done += poll_one(i);
    }
    busy_ = done > 0;
    return done;
  }
  /// The next poll() looks at those that rest in turn.
  void stay_busy() noexcept {
    busy_ = true;
    fruitless_ = 0;
  }

 private:
  std::size_t polls_ = 0;
  std::size_t resting_ = 0;    // in the last poll that looked at those in turn
  std::size_t fruitless_ = 0;  // so many polls have found nothing
  bool busy_ = false;          // those that rest are looked at in turn
};

}  // namespace dunlin

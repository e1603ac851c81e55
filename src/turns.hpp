#pragma once

#include <algorithm>
#include <cstddef>

namespace dunlin {

/// Parts that are polled in one loop, of which most have nothing to do. Those that rest are looked
/// at in turn while others have work, some eight a poll, so that they cost these little. Once the
/// others find nothing for as many polls as it takes to look at all that rest, poll() returns 0,
/// and looks at all from then on until one finds something.
class Turns {
 public:
  /// A part that rests is looked at once in so many polls, at least and at most.
  static constexpr std::size_t kLeastRest = 8;
  static constexpr std::size_t kMostRest = 64;

  /// Of the parts from 0 to count() - 1; there may be more, or fewer, after each `poll(i)`, which
  /// returns how much it did. Returns 0 only if all have been looked at since one found something.
  template <class Count, class Rests, class Poll>
  std::size_t poll(const Count& count, const Rests& rests, const Poll& poll_one) {
    const std::size_t period = std::clamp(count() / kLeastRest, kLeastRest, kMostRest);
    ++polls_;
    std::size_t done = 0;
    bool passed_over = false;
    for (std::size_t i = 0; i < count(); ++i) {
      if (busy_ && (i + polls_) % period != 0 && rests(i))
        passed_over = true;
      else
        done += poll_one(i);
    }
    fruitless_ = done > 0 ? 0 : fruitless_ + 1;
    busy_ = done > 0 || (passed_over && fruitless_ < period);
    return done > 0 || !busy_ ? done : 1;
  }
  /// The next poll() looks at those that rest in turn.
  void stay_busy() noexcept {
    busy_ = true;
    fruitless_ = 0;
  }

 private:
  std::size_t polls_ = 0;
  std::size_t fruitless_ = 0;  // so many polls have found nothing
  bool busy_ = false;          // those that rest are looked at in turn
};

}  // namespace dunlin

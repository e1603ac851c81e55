#pragma once

#include <cstddef>

namespace dunlin {

/// Parts that are polled in one loop, of which most have nothing to do. Those that rest are looked
/// at in turn, once in `kRestsFor` polls, while others have work: so they cost these little. Once
/// nothing else is found, all are looked at.
class Turns {
 public:
  static constexpr std::size_t kRestsFor = 8;

  /// Of the parts from 0 to count() - 1; there may be more, or fewer, after each `poll(i)`, which
  /// returns how much it did.
  template <class Count, class Rests, class Poll>
  std::size_t poll(const Count& count, const Rests& rests, const Poll& poll_one) {
    const bool in_turn = busy_;
    ++polls_;
    std::size_t done = 0;
    bool passed_over = false;
    for (std::size_t i = 0; i < count(); ++i) {
      if (in_turn && (i + polls_) % kRestsFor != 0 && rests(i))
        passed_over = true;
      else
        done += poll_one(i);
    }
    if (passed_over && done == 0)
      for (std::size_t i = 0; i < count(); ++i) done += poll_one(i);
    busy_ = done > 0;
    return done;
  }
  /// The next poll() looks at those that rest in turn.
  void stay_busy() noexcept { busy_ = true; }

 private:
  std::size_t polls_ = 0;
  bool busy_ = false;  // in the last poll
};

}  // namespace dunlin

#include "fabric/tick_timer.hpp"

#include <gtest/gtest.h>

namespace dunlin {
namespace {

constexpr std::uint64_t kIntervalNs = 1'000;

/// A timer that knows the rate of its counter; it last started at `ticks` and `now_ns`.
struct Learnt {
  explicit Learnt(std::uint64_t rate) {
    for (int round = 0; round < 40; ++round) {
      ticks += rate * kIntervalNs;
      now_ns += kIntervalNs;
      timer.restart(ticks, now_ns);
    }
  }
  std::uint64_t ticks = 5'000'000;
  std::uint64_t now_ns = 70'000;
  TickTimer timer{kIntervalNs, now_ns};
};

TEST(TickTimer, IsOverAtOnceUntilItKnowsARate) {
  EXPECT_TRUE(TickTimer(kIntervalNs, 0).over(0));
  EXPECT_TRUE(TickTimer(kIntervalNs, 0).over(12345));
}

TEST(TickTimer, LearnsTheRateOfItsCounter) {
  for (const std::uint64_t rate : {1U, 3U, 8U}) {
    const Learnt known(rate);
    EXPECT_FALSE(known.timer.over(known.ticks));
    EXPECT_FALSE(known.timer.over(known.ticks + rate * kIntervalNs * 9 / 10));
    EXPECT_TRUE(known.timer.over(known.ticks + rate * kIntervalNs));
  }
}

TEST(TickTimer, IsOverWhenTheCounterGoesBack) {
  const Learnt known(3);
  EXPECT_TRUE(known.timer.over(known.ticks - 1));
}

TEST(TickTimer, IsAlwaysOverWithACounterThatStandsStill) {
  Learnt known(0);
  EXPECT_TRUE(known.timer.over(known.ticks));
}

/// As after a stop between reading the clock and the counter: the rate seems to be huge.
TEST(TickTimer, IsNotDeceivedByOneWrongReading) {
  Learnt known(3);
  const std::uint64_t late = known.ticks + 4'000'000'000;
  known.timer.restart(late, known.now_ns + kIntervalNs);
  EXPECT_TRUE(known.timer.over(late + 2 * 3 * kIntervalNs + 1));
}

TEST(TickTimer, IsOverWhenExpiredUntilItIsRestarted) {
  Learnt known(3);
  known.timer.expire();
  EXPECT_TRUE(known.timer.over(known.ticks));
  known.timer.restart(known.ticks + 3, known.now_ns + 1);
  EXPECT_FALSE(known.timer.over(known.ticks + 3));
}

}  // namespace
}  // namespace dunlin

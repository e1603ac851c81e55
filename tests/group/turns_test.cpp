#include "turns.hpp"

#include <cstddef>
#include <set>
#include <vector>

#include <gtest/gtest.h>

/// Which parts a poll looks at.
namespace dunlin {
namespace {

struct Parts {
  explicit Parts(std::size_t count) : polled(count) {}

  Turns turns;
  std::set<std::size_t> resting;
  std::set<std::size_t> busy;
  std::vector<std::size_t> polled;  // how often

  std::size_t poll() {
    return turns.poll([&] { return polled.size(); },
                      [&](std::size_t i) { return resting.contains(i); },
                      [&](std::size_t i) {
                        ++polled[i];
                        return busy.contains(i) ? std::size_t{1} : std::size_t{0};
                      });
  }
};

TEST(Turns, LookAtThoseThatRestOnceInSoManyPollsOfBusyOnes) {
  for (const std::size_t count : {20UL, 256UL, 5000UL}) {
    Parts parts(count);
    const std::size_t period = count == 20 ? 8 : count == 256 ? 31 : 64;
    parts.busy = {3};
    for (std::size_t i = 0; i < count; ++i)
      if (i != 3 && i != 7) parts.resting.insert(i);
    // None was busy before; then the period follows from how many rest.
    for (int poll = 0; poll < 3; ++poll) parts.poll();
    parts.polled.assign(count, 0);
    for (std::size_t poll = 0; poll < 2 * period; ++poll) EXPECT_EQ(parts.poll(), 1U);
    for (std::size_t i = 0; i < count; ++i)
      EXPECT_EQ(parts.polled[i], i == 3 || i == 7 ? 2 * period : 2U) << i << " of " << count;
  }
}

/// Or a runner would sleep over what they have: a poll that returns 0 has looked at all itself.
TEST(Turns, FindNothingOnlyInAPollThatLooksAtAll) {
  for (const std::size_t count : {20UL, 256UL}) {
    Parts parts(count);
    parts.busy = {3};
    for (std::size_t i = 4; i < count; ++i) parts.resting.insert(i);
    for (int poll = 0; poll < 3; ++poll) EXPECT_EQ(parts.poll(), 1U);
    parts.busy.clear();
    std::size_t polls = 0;
    do {
      parts.polled.assign(count, 0);
      ++polls;
    } while (parts.poll() > 0);
    EXPECT_EQ(polls, count == 20 ? 8U : 31U);
    for (const std::size_t times : parts.polled) EXPECT_GE(times, 1U);
    parts.busy = {17};
    EXPECT_EQ(parts.poll(), 1U) << "a poll after that looks at all";
  }
}

/// What comes for one that rests, before or after its turn in a round that finds nothing.
TEST(Turns, MissNothingThatComesDuringARound) {
  for (std::size_t when = 0; when < Turns::kLeastRest; ++when) {
    Parts parts(20);
    for (std::size_t i = 4; i < parts.polled.size(); ++i) parts.resting.insert(i);
    parts.busy = {3};
    for (int poll = 0; poll < 3; ++poll) parts.poll();
    parts.busy.clear();
    for (std::size_t poll = 0; poll < when; ++poll) EXPECT_EQ(parts.poll(), 1U);
    parts.busy = {11};
    parts.polled[11] = 0;
    for (std::size_t poll = 0; poll < Turns::kLeastRest; ++poll)
      EXPECT_GT(parts.poll(), 0U) << "it would sleep over what came after " << when << " polls";
    EXPECT_GT(parts.polled[11], 0U) << when;
  }
}

/// One that rests gets its turn while another's work comes and goes.
TEST(Turns, FindThoseThatRestWhileOthersComeAndGo) {
  Parts parts(20);
  for (std::size_t i = 0; i < parts.polled.size(); ++i) parts.resting.insert(i);
  parts.busy = {3};
  parts.poll();
  for (std::size_t poll = 0; poll < 2 * Turns::kLeastRest; ++poll) {
    parts.busy = poll % 2 == 0 ? std::set<std::size_t>{} : std::set<std::size_t>{3};
    EXPECT_EQ(parts.poll(), 1U);
  }
  for (const std::size_t times : parts.polled) EXPECT_GE(times, 2U);
}

TEST(Turns, AllowPartsToComeAndGoWhileOneIsPolled) {
  Turns turns;
  std::size_t count = 1;
  std::size_t polled = 0;
  EXPECT_EQ(turns.poll([&] { return count; }, [](std::size_t) { return false; },
                       [&](std::size_t i) {
                         ++polled;
                         count = i == 0 ? 3 : 2;
                         return std::size_t{1};
                       }),
            2U);
  EXPECT_EQ(polled, 2U);
}

}  // namespace
}  // namespace dunlin

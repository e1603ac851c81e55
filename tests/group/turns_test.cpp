#include "turns.hpp"

#include <cstddef>
#include <set>
#include <vector>

#include <gtest/gtest.h>

/// Which parts a poll looks at.
namespace dunlin {
namespace {

struct Parts {
  Turns turns;
  std::set<std::size_t> resting;
  std::set<std::size_t> busy;
  std::vector<std::size_t> polled = std::vector<std::size_t>(20);  // how often

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
  Parts parts;
  parts.busy = {3};
  for (std::size_t i = 0; i < parts.polled.size(); ++i)
    if (i != 3 && i != 7) parts.resting.insert(i);
  parts.poll();  // none was busy before
  parts.polled.assign(parts.polled.size(), 0);
  for (std::size_t poll = 0; poll < 2 * Turns::kRestsFor; ++poll) EXPECT_EQ(parts.poll(), 1U);
  for (std::size_t i = 0; i < parts.polled.size(); ++i)
    EXPECT_EQ(parts.polled[i], i == 3 || i == 7 ? 2 * Turns::kRestsFor : 2U) << i;
}

/// Or a runner would sleep over what they have.
TEST(Turns, LookAtAllIfNothingElseIsFound) {
  Parts parts;
  parts.busy = {3};
  for (std::size_t i = 0; i < parts.polled.size(); ++i) parts.resting.insert(i);
  EXPECT_EQ(parts.poll(), 1U);
  parts.polled.assign(parts.polled.size(), 0);
  parts.busy.clear();
  EXPECT_EQ(parts.poll(), 0U);
  for (const std::size_t times : parts.polled) EXPECT_GE(times, 1U);
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

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/node/turn.hpp>

namespace dunlin::node {
namespace {

/// Most threads sleep most of the time, as a turn lasts longer than they look for it.
TEST(Turn, WakesAllThatSleepForIt) {
  Turn turn;
  std::uint64_t turns = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 6; ++thread)
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) {
          turn.take();
          ++turns;
          for (int yields = 0; yields < 200; ++yields) std::this_thread::yield();
          turn.give();
        }
      });
  }
  EXPECT_EQ(turns, 300U);
  EXPECT_FALSE(turn.wanted());
}

TEST(Turn, IsGivenToThoseThatWantItAndTakenBack) {
  Turn turn;
  turn.take();
  EXPECT_FALSE(turn.try_take());
  EXPECT_FALSE(turn.take_within(1'000));
  bool taken = false;
  std::jthread other([&] {
    turn.take();
    taken = true;
    turn.give();
  });
  while (!turn.wanted()) std::this_thread::yield();
  while (turn.wanted()) turn.share();
  EXPECT_TRUE(taken);
  turn.give();
}

}  // namespace
}  // namespace dunlin::node

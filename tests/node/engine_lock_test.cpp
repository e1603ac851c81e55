#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/node/engine_lock.hpp>

namespace dunlin::node {
namespace {

/// Most threads sleep most of the time, as each holds it for longer than the others look for it.
TEST(EngineLock, WakesAllThatSleepForIt) {
  EngineLock lock;
  std::uint64_t times = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 6; ++thread)
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) {
          lock.lock();
          ++times;
          for (int yields = 0; yields < 200; ++yields) std::this_thread::yield();
          lock.unlock();
        }
      });
  }
  EXPECT_EQ(times, 300U);
  EXPECT_FALSE(lock.wanted());
}

TEST(EngineLock, IsGivenToThoseThatWantItAndTakenBack) {
  EngineLock lock;
  lock.lock();
  EXPECT_FALSE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock_for(1'000));
  bool taken = false;
  std::jthread other([&] {
    lock.lock();
    taken = true;
    lock.unlock();
  });
  while (!lock.wanted()) std::this_thread::yield();
  while (lock.wanted()) lock.share();
  EXPECT_TRUE(taken);
  lock.unlock();
}

}  // namespace
}  // namespace dunlin::node

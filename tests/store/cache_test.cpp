#include "store/cache.hpp"

#include <atomic>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

/// The location cache alone.
namespace dunlin::store {
namespace {

TEST(LocationCache, OfNothingHoldsNothing) {
  LocationCache cache(63);
  EXPECT_EQ(cache.slots(), 0U);
  cache.insert(1, 2);
  cache.erase(1);
  EXPECT_EQ(cache.find(1), 0U);
}

TEST(LocationCache, HoldsAsManyAsItHasBytesFor) {
  EXPECT_EQ(LocationCache(20 << 20).slots(), (20U << 20U) / 16);
  EXPECT_EQ(LocationCache(3 * 64 + 5).slots(), 12U);
}

TEST(LocationCache, FindsWhatWasInsertedLastForAHash) {
  LocationCache cache(64);
  EXPECT_EQ(cache.find(0), 0U) << "a hash of 0 is not there from the beginning";
  for (const std::uint64_t hash : {0U, 1U, 2U, 3U}) cache.insert(hash, hash + 100);
  cache.insert(2, 7);
  EXPECT_EQ(cache.find(0), 100U);
  EXPECT_EQ(cache.find(1), 101U);
  EXPECT_EQ(cache.find(2), 7U);
  EXPECT_EQ(cache.find(3), 103U);
  cache.erase(1);
  EXPECT_EQ(cache.find(1), 0U);
  cache.insert(9, 109);
  for (const std::uint64_t hash : {0U, 2U, 3U, 9U}) EXPECT_NE(cache.find(hash), 0U) << hash;
}

TEST(LocationCache, KeepsOneThatIsAskedForBetweenOthers) {
  LocationCache cache(64);
  cache.insert(1, 1);
  for (std::uint64_t once = 10; once < 1'000; ++once) {
    EXPECT_EQ(cache.find(1), 1U) << once;
    cache.insert(once, once);
    cache.insert(once + 10'000, once);
    cache.insert(once + 20'000, once);
  }
}

/// Threads that move the same places: a word that is found was inserted, if for another hash.
TEST(LocationCacheOfThreads, FindsOnlyWhatWasInserted) {
  constexpr std::uint64_t kKeys = 64;
  constexpr std::uint64_t kAbove = 1'000;
  LocationCache cache(4 * 64);
  std::vector<std::thread> threads;
  std::atomic<bool> foreign = false;
  for (std::uint64_t number = 0; number < 4; ++number)
    threads.emplace_back([&, number] {
      std::mt19937_64 random(number);
      for (int round = 0; round < 20'000; ++round) {
        const std::uint64_t key = random() % kKeys;
        const std::uint64_t word = cache.find(key);
        if (word != 0 && (word < kAbove || word >= kAbove + kKeys)) foreign = true;
        if (word == 0) cache.insert(key, kAbove + key);
        if (random() % 8 == 0) cache.erase(random() % kKeys);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(foreign);
  cache.insert(1, kAbove + 1);
  EXPECT_EQ(cache.find(1), kAbove + 1) << "and what is there now is right";
}

/// As a client of one home among 256 does it: what is not found is inserted.
TEST(LocationCache, IsUsedInAllOfItsSets) {
  constexpr std::uint64_t kKeys = 6 * 1'000;
  LocationCache cache(1'500 * 64);
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> hashes(kKeys);
  for (std::uint64_t& hash : hashes) hash = random() >> 8U;
  for (int round = 0; round < 3; ++round)
    for (const std::uint64_t hash : hashes)
      if (cache.find(hash) == 0) cache.insert(hash, hash | 1U);
  std::uint64_t found = 0;
  for (const std::uint64_t hash : hashes) found += cache.find(hash) != 0 ? 1 : 0;
  EXPECT_GT(found, kKeys * 7 / 10) << "of as many as it has places";
}

}  // namespace
}  // namespace dunlin::store

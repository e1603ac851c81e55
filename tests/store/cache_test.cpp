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

/// The word of a slot whose entry fills its block.
constexpr std::uint64_t word(std::uint64_t number) {
  return slot_word::make(SlotType::entry, number, {false, 1, (number + 1) * kCacheLineBytes}, 128);
}

TEST(LocationCache, OfNothingHoldsNothing) {
  LocationCache cache(63);
  EXPECT_EQ(cache.slots(), 0U);
  cache.insert(1, word(2));
  cache.erase(1);
  EXPECT_EQ(cache.find(1), 0U);
}

TEST(LocationCache, HoldsAsManyAsItHasBytesFor) {
  EXPECT_EQ(LocationCache(20 << 20).slots(), (20U << 20U) / 8);
  EXPECT_EQ(LocationCache(3 * 64 + 5).slots(), 24U);
}

/// But for the lines, of which it keeps the quarters of the block.
TEST(LocationCache, KeepsTheWordOfASlot) {
  LocationCache cache(64);
  const Location far{true, 4, slot_word::kMostOffset - kCacheLineBytes};
  const auto found = [&](const Location& location, std::size_t bytes) {
    cache.insert(7, slot_word::make(SlotType::entry, 0x3000000003fff, location, bytes));
    return cache.find(7);
  };
  for (const std::size_t bytes : {1UL, 64UL, 100'000UL, kLargeBlocks[4]}) {
    const std::uint64_t there = found(far, bytes);
    EXPECT_EQ(slot_word::location_of(there), far);
    EXPECT_EQ(slot_word::lossy_of(there), slot_word::lossy(0x3000000003fff));
    EXPECT_TRUE(leads_to_entry(there));
  }
  EXPECT_EQ(slot_word::bytes_of(found({false, 0, 64}, 40)), 64U);
  EXPECT_EQ(slot_word::bytes_of(found({false, 1, 64}, 40)), 64U);
  EXPECT_EQ(slot_word::bytes_of(found({false, 1, 64}, 65)), 128U);
  EXPECT_EQ(slot_word::bytes_of(found({false, 16, 64}, 1'000)), 1'024U);
  EXPECT_EQ(slot_word::bytes_of(found({false, 16, 64}, 1'025)), 2'048U);
  EXPECT_EQ(slot_word::bytes_of(found({false, 16, 64}, 4'096)), 4'096U);
}

TEST(LocationCache, FindsWhatWasInsertedLastForAHash) {
  LocationCache cache(64);
  EXPECT_EQ(cache.find(0), 0U) << "a hash of 0 is not there from the beginning";
  for (std::uint64_t hash = 0; hash < 8; ++hash) cache.insert(hash, word(hash + 100));
  cache.insert(2, word(7));
  EXPECT_EQ(cache.find(0), word(100));
  EXPECT_EQ(cache.find(1), word(101));
  EXPECT_EQ(cache.find(2), word(7));
  EXPECT_EQ(cache.find(3), word(103));
  cache.erase(1);
  EXPECT_EQ(cache.find(1), 0U);
  cache.insert(9, word(109));
  for (const std::uint64_t hash : {0U, 2U, 3U, 7U, 9U}) EXPECT_NE(cache.find(hash), 0U) << hash;
}

TEST(LocationCache, KeepsOneThatIsAskedForBetweenOthers) {
  LocationCache cache(64);
  cache.insert(1, word(1));
  for (std::uint64_t once = 10; once < 1'000; ++once) {
    EXPECT_EQ(cache.find(1), word(1)) << once;
    for (const std::uint64_t other : {0U, 10'000U, 20'000U}) {
      const std::uint64_t hash = once + other;
      if (hash % 4'096 != 1) cache.insert(hash, word(once));  // not with the same tag
    }
  }
}

/// Threads that move the same places: a word that is found was inserted, if for another hash.
TEST(LocationCacheOfThreads, FindsOnlyWhatWasInserted) {
  constexpr std::uint64_t kKeys = 128;
  constexpr std::uint64_t kAbove = 1'000;
  LocationCache cache(4 * 64);
  std::vector<std::thread> threads;
  std::atomic<bool> foreign = false;
  for (std::uint64_t number = 0; number < 4; ++number)
    threads.emplace_back([&, number] {
      std::mt19937_64 random(number);
      for (int round = 0; round < 20'000; ++round) {
        const std::uint64_t key = random() % kKeys;
        const std::uint64_t found = cache.find(key);
        if (found != 0 && (found < word(kAbove) || found >= word(kAbove + kKeys))) foreign = true;
        if (found == 0) cache.insert(key, word(kAbove + key));
        if (random() % 8 == 0) cache.erase(random() % kKeys);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(foreign);
  cache.insert(1, word(kAbove + 1));
  EXPECT_EQ(cache.find(1), word(kAbove + 1)) << "and what is there now is right";
}

/// As a client of one home among 256 does it: what is not found is inserted.
TEST(LocationCache, IsUsedInAllOfItsSets) {
  constexpr std::uint64_t kKeys = 12 * 1'000;
  LocationCache cache(1'500 * 64);
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> hashes(kKeys);
  for (std::uint64_t& hash : hashes) hash = random() >> 8U;
  for (int round = 0; round < 3; ++round)
    for (const std::uint64_t hash : hashes)
      if (cache.find(hash) == 0) cache.insert(hash, word(hash % 1'000));
  std::uint64_t found = 0;
  for (const std::uint64_t hash : hashes) found += cache.find(hash) == word(hash % 1'000) ? 1 : 0;
  EXPECT_GT(found, kKeys * 7 / 10) << "of as many as it has places";
}

}  // namespace
}  // namespace dunlin::store

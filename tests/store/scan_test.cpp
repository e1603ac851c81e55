#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/sim_members.hpp"
#include "store/stores.hpp"

/// Scans of indexes that are nearly empty: an empty region costs no step, and hides no key.
namespace dunlin {
namespace {

using remote::Status;

struct ScanOfFew : test::OnStores {
  /// Keys of words, in the order in which they are seen, and the steps that it took.
  std::pair<std::vector<std::uint64_t>, int> scanned(Rank by) {
    std::vector<std::uint64_t> keys;
    StoreScan scan(at(by));
    StoreCursor cursor = 0;
    int steps = 0;
    do {
      scan.step(cursor);
      ended_scan(scan);
      add_keys(keys, scan);
      cursor = scan.cursor();
    } while (++steps < 10'000 && cursor != 0);
    EXPECT_EQ(cursor, 0U);
    return {keys, steps};
  }
  void ended_scan(StoreScan& scan) { EXPECT_EQ(remote::describe(cluster->end_of(scan)), "done"); }
  static void add_keys(std::vector<std::uint64_t>& keys, const StoreScan& scan) {
    for (std::size_t i = 0; i < scan.size(); ++i) {
      ASSERT_EQ(scan[i].key.size(), sizeof(std::uint64_t));
      std::memcpy(&keys.emplace_back(), scan[i].key.data(), sizeof(std::uint64_t));
    }
  }
  void put_many(std::uint64_t first, std::uint64_t behind) {
    for (std::uint64_t key = first; key < behind; ++key) {
      put(0, key, "value");
      if (key % 20 == 0) settle();
    }
    settle();
  }
  void expect_few(Rank by, std::uint64_t count) {
    auto [keys, steps] = scanned(by);
    std::ranges::sort(keys);
    std::vector<std::uint64_t> expected(count);
    for (std::uint64_t key = 0; key < count; ++key) expected[key] = key;
    EXPECT_EQ(keys, expected);
    EXPECT_LE(steps, static_cast<int>(cluster->size() + count / 8));
  }
};

TEST_P(ScanOfFew, StepsOverEmptyChainsOfAnIndexThatIsLarge) {
  StoreOptions options = test::small_store();
  options.expected_keys = 12'000;
  start(2, options);
  expect_few(1, 0);
  for (std::uint64_t key = 0; key < 12; ++key) put(0, key, "value");
  expect_few(0, 12);
  expect_few(1, 12);
}

TEST_P(ScanOfFew, StepsOverEmptyChainsOfAnIndexThatHasGrown) {
  StoreOptions options = test::small_store();
  options.expected_keys = 1;
  start(2, options);
  constexpr std::uint64_t kMany = 800;
  put_many(0, kMany);
  for (std::uint64_t key = 5; key < kMany; ++key) EXPECT_TRUE(erase(1, key));
  for (const Rank rank : {0U, 1U}) expect_few(rank, 5);
}

/// The chains that are passed over are split, and filled, meanwhile.
TEST_P(ScanOfFew, SeesEachKeyThatStaysOnceWhileTheIndexGrows) {
  StoreOptions options = test::small_store();
  options.expected_keys = 1;
  start(2, options);
  constexpr std::uint64_t kStay = 30, kMany = 400;
  put_many(0, kMany);
  for (std::uint64_t key = kStay; key < kMany; ++key) EXPECT_TRUE(erase(1, key));
  const std::uint64_t splits = sum_of("splits");
  StoreScan scan(at(1), {.buckets = 1});
  StoreCursor cursor = 0;
  std::vector<std::uint64_t> keys;
  std::uint64_t next = kMany;
  do {
    scan.step(cursor);
    put_many(next, next + 25);  // beside the step
    next += 25;
    ended_scan(scan);
    add_keys(keys, scan);
    cursor = scan.cursor();
  } while (cursor != 0 && next < 20'000);
  EXPECT_EQ(cursor, 0U);
  EXPECT_GT(sum_of("splits"), splits);
  std::vector<int> seen(kStay);
  for (const std::uint64_t key : keys)
    if (key < kStay) ++seen[key];
  for (std::uint64_t key = 0; key < kStay; ++key) EXPECT_EQ(seen[key], 1) << "STO-10: " << key;
}

DUNLIN_RUN_ON(test::store_backends(), ScanOfFew);

TEST(ScanOfFewInSimulator, ReturnsEachKeyOnceWhileTheyMove) {
  StoreOptions options = test::roomy_store();
  options.expected_keys = 3'000;
  for (std::uint64_t pause = 1'000; pause < 1'000'000; pause *= 2) {
    test::Joining members(options);
    members.fill(25);
    members.join(test::kLate);
    auto take = members.at(test::kLate).settle();
    EXPECT_EQ(members.scanned(2, pause), members.expected) << "STO-M2: pause " << pause;
    EXPECT_EQ(members.end_of(take), Status::ok);
    EXPECT_EQ(members.scanned(2), members.expected) << "STO-M2: pause " << pause;
    auto leave = members.at(1).leave();
    EXPECT_EQ(members.scanned(test::kLate, pause), members.expected) << "STO-M2: pause " << pause;
    EXPECT_EQ(members.end_of(leave), Status::ok);
    EXPECT_EQ(members.scanned(0), members.expected) << "STO-M2: pause " << pause;
  }
}

}  // namespace
}  // namespace dunlin

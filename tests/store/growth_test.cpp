#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/index_shape.hpp"
#include "store/stores.hpp"
#include "support/rounds.hpp"

/// An index that is laid out for one key, and grows while it is used.
namespace dunlin {
namespace {

using remote::Status;
using store::IndexShape;

// --- which chain a position has ------------------------------------------------------------------

/// The chains of an index: where each begins, by its number.
std::map<std::uint64_t, std::uint64_t> begins(const IndexShape& shape) {
  std::map<std::uint64_t, std::uint64_t> all;
  for (std::uint64_t position = 0; position <= UINT32_MAX;) {
    const std::uint64_t number = shape.number_of(position);
    EXPECT_TRUE(all.emplace(number, position).second) << number << " has two ranges";
    std::uint32_t depth = 0;
    while (shape.number_at(position, depth) != number) ++depth;
    // The deepest is the one that the main header says.
    std::uint32_t deepest = depth;
    for (std::uint32_t next = depth + 1; shape.is_depth(next) && shape.base() << next <= 8192;
         ++next) {
      const std::uint64_t last = shape.end_of(position, next - 1) - 1;
      if (shape.number_of(last) == number) break;
      deepest = next;
    }
    position = shape.end_of(position, deepest);
  }
  return all;
}

TEST(IndexShape, EachMainHeaderHasOneRangeAndTheNextSplitHalvesOne) {
  for (const std::uint64_t base : {1U, 2U, 3U, 7U, 34U}) {
    IndexShape shape(base);
    std::map<std::uint64_t, std::uint64_t> before = begins(shape);
    while (shape.headers() < base * 6 + 1) {
      const std::uint64_t number = shape.headers(), from = shape.next_to_split();
      const std::uint32_t depth = shape.depth_to_split();
      const std::uint64_t begin = before.at(from), end = shape.end_of(begin, depth);
      shape.grow_to(number + 1);
      std::map<std::uint64_t, std::uint64_t> after = begins(shape);
      ASSERT_EQ(after.size(), number + 1) << base;
      const std::uint64_t upper = after.at(number);
      EXPECT_GT(upper, begin);
      EXPECT_LT(upper, end);
      EXPECT_LE(std::max(upper - begin, end - upper) - std::min(upper - begin, end - upper), 2U);
      for (const std::uint64_t position : {begin, upper - 1, upper, end - 1})
        EXPECT_EQ(shape.number_at(position, depth + 1), position < upper ? from : number);
      after.erase(number);
      EXPECT_EQ(after, before) << base << ": another chain has moved";
      before = begins(shape);
    }
  }
}

TEST(IndexShape, EachMainHeadersRangeBeginsAtAPositionOfItsOwn) {
  for (const std::uint64_t base : {1U, 2U, 3U, 7U}) {
    IndexShape shape(base);
    shape.grow_to(base * 11 + 1);
    for (std::uint64_t number = 0; number < shape.headers(); ++number) {
      const std::uint64_t begin = shape.begin_of(number);
      EXPECT_EQ(shape.number_of(begin), number) << base;
      EXPECT_TRUE(begin == 0 || shape.number_of(begin - 1) != number) << base;
    }
  }
}

TEST(IndexShape, GrowsToAnyNumberAtOnceAsOneByOne) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t base = 1 + random() % 1'000, headers = base + random() % (base * 40);
    IndexShape at_once(base), one_by_one(base);
    at_once.grow_to(headers);
    while (one_by_one.headers() < headers) one_by_one.grow_to(one_by_one.headers() + 1);
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t position = random() & UINT32_MAX;
      ASSERT_EQ(at_once.number_of(position), one_by_one.number_of(position));
      ASSERT_LT(at_once.number_of(position), headers);
    }
  }
}

TEST(IndexShape, StopsWhereEachChainHasOnePosition) {
  IndexShape shape(UINT32_MAX);
  EXPECT_FALSE(shape.can_grow());
  EXPECT_EQ(shape.number_of(UINT32_MAX), UINT32_MAX - 1);
  EXPECT_FALSE(shape.is_depth(1));
  EXPECT_FALSE(IndexShape(1).is_depth(33));
  EXPECT_TRUE(IndexShape(1).is_depth(20));
}

// --- stores --------------------------------------------------------------------------------------

struct GrowthOnStores : test::OnStores {
  static StoreOptions one_key() {
    StoreOptions options = test::small_store();
    options.expected_keys = 1;
    options.cache_bytes = 0;
    return options;
  }
  static std::string value_of(std::uint64_t key) { return "value of " + std::to_string(key); }
  void put_all(Rank by, std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t key = first; key < first + count; ++key) put(by, key, value_of(key));
  }
};

DUNLIN_RUN_ON(test::store_backends(), GrowthOnStores);

TEST_P(GrowthOnStores, TheIndexGrowsWithTheKeysAndLookupsStayShort) {
  constexpr std::uint64_t kMany = 1'200;
  start(3, one_key());
  EXPECT_EQ(get(2, 7), "-");  // knows an index of one main header
  for (std::uint64_t key = 0; key < kMany; key += 20) {
    put_all(0, key, 20);
    settle();
  }
  EXPECT_GT(sum_of("splits"), kMany / 8);
  std::uint64_t reads = 0;
  for (std::uint64_t key = 0; key < kMany; ++key) {
    auto op = at(2).get(key);
    EXPECT_EQ(ended(op).text(), value_of(key));
    reads += op.bucket_reads();
  }
  // Main headers that are read twice, as this member learns of their splits, among them.
  EXPECT_LT(reads, kMany * 3 / 2);
  for (std::uint64_t key = kMany; key < kMany + 100; ++key) EXPECT_EQ(get(1, key), "-");
  for (std::uint64_t key = 0; key < kMany; key += 2) EXPECT_TRUE(erase(1, key));
  EXPECT_EQ(count(2), kMany / 2);
  for (std::uint64_t key = 0; key < kMany; ++key)
    ASSERT_EQ(get(2, key), key % 2 == 0 ? "-" : value_of(key)) << key;
}

TEST_P(GrowthOnStores, CachedLocationsSurvive) {
  StoreOptions options = one_key();
  options.cache_bytes = 1 << 16;
  start(2, options);
  put_all(0, 0, 5);
  for (std::uint64_t key = 0; key < 5; ++key) EXPECT_EQ(get(1, key), value_of(key));
  put_all(0, 5, 500);
  settle();
  EXPECT_GT(sum_of("splits"), 0U);
  for (std::uint64_t key = 0; key < 5; ++key) {
    auto op = at(1).get(key);
    EXPECT_EQ(ended(op).text(), value_of(key));
    EXPECT_EQ(op.bucket_reads(), 0U);
  }
}

TEST_P(GrowthOnStores, AScanReturnsEachKeyOnceWhileChainsAreSplit) {
  constexpr std::uint64_t kStay = 60;
  start(2, one_key());
  put_all(0, 0, kStay);
  StoreScan scan(at(1), {.buckets = 1});
  std::vector<int> seen(kStay);
  StoreCursor cursor = 0;
  std::uint64_t next = kStay;
  int steps = 0;
  do {
    scan.step(cursor);
    put(0, next, value_of(next));  // beside the step
    ++next;
    settle();
    ASSERT_EQ(remote::describe(cluster->end_of(scan)), "done");
    for (std::size_t i = 0; i < scan.size(); ++i) {
      std::uint64_t key = 0;
      ASSERT_EQ(scan[i].key.size(), sizeof key);
      std::memcpy(&key, scan[i].key.data(), sizeof key);
      if (key < kStay) ++seen[key];
    }
    cursor = scan.cursor();
    if (next < 600) put_all(0, next, 12), next += 12;
    settle();
  } while (cursor != 0 && ++steps < 10'000);
  EXPECT_EQ(cursor, 0U);
  EXPECT_GT(sum_of("splits"), 10U);
  for (std::uint64_t key = 0; key < kStay; ++key) EXPECT_EQ(seen[key], 1) << key;
}

TEST_P(GrowthOnStores, ATransactionWhoseChainsAreSplitConflictsOrHappens) {
  start(2, one_key());
  put(0, 1'000'000, "50");
  put(0, 1'000'001, "50");
  std::uint64_t next = 0;
  int done = 0;
  for (int round = 0; round < 40; ++round) {
    StoreTransaction move(at(1));
    auto& from = move.get(1'000'000);
    auto& to = move.get(1'000'001);
    ended(from);
    ended(to);
    const int has = std::stoi(std::string(from.text())), other = std::stoi(std::string(to.text()));
    EXPECT_EQ(has + other, 100);
    if (round % 2 == 0) put_all(0, next, 15), next += 15;
    settle();
    move.put(1'000'000, std::to_string(has - 1));
    move.put(1'000'001, std::to_string(other + 1));
    for (std::uint64_t key = 0; key < 6; ++key) move.put(2'000'000 + key, std::to_string(round));
    const Status status = cluster->end_of(move.commit());
    ASSERT_TRUE(status == Status::ok || status == Status::conflict) << remote::describe(status);
    if (status == Status::ok) ++done;
  }
  EXPECT_GT(sum_of("splits"), 10U);
  EXPECT_GT(done, 10);
  EXPECT_EQ(get(0, 1'000'000), std::to_string(50 - done));
  EXPECT_EQ(get(0, 1'000'001), std::to_string(50 + done));
}

/// Keys that another member inserts, changes and erases while this one looks for others.
TEST_P(GrowthOnStores, CallsUnderWayFindWhatIsThere) {
  constexpr std::uint64_t kStay = 40;
  start(2, one_key());
  put_all(0, 0, kStay);
  std::mt19937_64 random(5);
  std::uint64_t next = 1'000;
  for (int round = 0; round < 60; ++round) {
    std::deque<StoreOperation> gets, puts;
    for (int i = 0; i < 8; ++i) {
      at(1).get(gets.emplace_back(), random() % kStay);
      at(0).put(puts.emplace_back(), next++, bytes("new"));
    }
    for (StoreOperation& get : gets) EXPECT_TRUE(ended(get).found());
    for (StoreOperation& put : puts) EXPECT_TRUE(ended(put).changed());
    settle();
  }
  EXPECT_GT(sum_of("splits"), 10U);
  EXPECT_EQ(count(1), kStay + 480);
}

TEST_P(GrowthOnStores, AnIndexWithoutRoomStaysAsItIs) {
  StoreOptions options = one_key();
  options.memory_bytes = kMinStoreBytes;
  options.homes = 1;
  start(2, options);
  Status last = Status::ok;
  std::uint64_t keys = 0;
  for (; last == Status::ok && keys < 100'000; ++keys) {
    last = cluster->end_of(at(1).put(keys, std::string(400, 'v')));
  }
  EXPECT_TRUE(last == Status::no_room || last == Status::full) << remote::describe(last);
  EXPECT_EQ(count(1), keys - 1);
  for (std::uint64_t key = 0; key + 1 < keys; ++key)
    ASSERT_EQ(get(1, key), std::string(400, 'v')) << key;
  for (std::uint64_t key = 0; key + 1 < keys; ++key) EXPECT_TRUE(erase(1, key));
  EXPECT_FALSE(put(1, 1, "again"));
}

/// While the home is paused, keys overflow into indirect headers. When it wakes, at any moment of
/// the gets, it splits their chain again and again.
TEST(StoreGrowth, AGetUnderWayFindsItsKeyWhereverItsChainIsSplit) {
  constexpr std::uint64_t kOverflow = 24, kPauseNs = 900'000;
  sim::Profile wild = sim::profile("ib100");
  wild.jitter = 0.9;
  wild.ordered_placement = false;
  std::uint64_t split_meanwhile = 0;
  for (std::uint64_t delay_ns = 0; delay_ns < 12'000; delay_ns += 150) {
    StoreOptions options = GrowthOnStores::one_key();
    options.homes = 1;
    test::SimStores cluster(wild, 2, options, 1 + delay_ns);
    ASSERT_EQ(cluster.end_of(cluster[1].put("first", "value")), Status::ok);
    const std::uint64_t wakes_ns = cluster[1].fabric().now_ns() + kPauseNs;
    cluster.world.pause(0, kPauseNs);
    for (std::uint64_t key = 0; key < kOverflow; ++key) {
      ASSERT_EQ(cluster.end_of(cluster[1].put(key, "value")), Status::ok);
    }
    ASSERT_EQ(cluster[0].counters().at("splits"), 0U);
    const std::uint64_t now_ns = cluster[1].fabric().now_ns();
    ASSERT_LT(now_ns + 12'000, wakes_ns);
    cluster.world.run_for(wakes_ns - now_ns - 10'000 + delay_ns);
    std::deque<StoreOperation> gets;
    for (std::uint64_t key = 0; key < kOverflow; ++key) cluster[1].get(gets.emplace_back(), key);
    std::uint64_t splits = 0;
    ASSERT_TRUE(cluster.until([&] {
      splits = cluster[0].counters().at("splits");
      return std::all_of(gets.begin(), gets.end(), [](const auto& get) { return get.finished(); });
    }));
    if (splits > 0) ++split_meanwhile;
    for (const StoreOperation& get : gets)
      ASSERT_TRUE(get.found()) << "STO-10: after " << delay_ns << " ns";
  }
  EXPECT_GT(split_meanwhile, 10U);
}

/// The home wakes when its index should grow and no slab is left for that.
TEST(StoreGrowth, CallsOfAHomeThatHasNoRoomToGrowEnd) {
  StoreOptions options = GrowthOnStores::one_key();
  options.memory_bytes = kMinStoreBytes;
  options.homes = 1;
  options.limit_bytes = 4 << 16;  // slabs
  test::SimStores cluster(sim::profile("ib100"), 2, options);
  ASSERT_EQ(cluster.end_of(cluster[1].put("first", "value")), Status::ok);
  cluster.world.pause(0, 900'000);
  Status last = Status::ok;
  for (std::uint64_t key = 0; key < 8; ++key) {
    ASSERT_EQ(cluster.end_of(cluster[1].put(key, "value")), Status::ok);
  }
  for (std::size_t bytes = 30'000; last == Status::ok && bytes > 1'000; bytes /= 2)
    for (std::uint64_t key = 0; last == Status::ok && key < 3; ++key) {
      last = cluster.end_of(cluster[1].put(1'000 * bytes + key, std::string(bytes, 'v')));
    }
  ASSERT_EQ(last, Status::no_room);
  ASSERT_EQ(cluster[0].counters().at("splits"), 0U);
  cluster.world.run_for(2'000'000);
  for (const std::size_t bytes : {60U, 300U, 700U, 6'000U}) {
    auto put = cluster[0].put(std::uint64_t{bytes}, std::string(bytes, 'h'));
    EXPECT_EQ(cluster.end_of(put), Status::no_room) << bytes;
  }
}

// --- by threads ----------------------------------------------------------------------------------

/// One thread inserts keys, and splits the chains in which another one looks for its own.
TEST(StoreGrowth, NoKeyIsMissedByAThreadThatLooksBesideTheSplits) {
  const std::uint64_t kStay = 64, kNew = test::rounds(20'000);
  const test::NodeBackend& shm = test::backend_of("Shm");
  StoreOptions options = GrowthOnStores::one_key();
  options.memory_bytes = 16 << 20;
  options.homes = 1;
  const std::string group = test::fresh_group();
  std::atomic<bool> is_filled = false, is_done = false;
  std::jthread reader([&] {
    const auto fabric = shm.join({.group = group, .nodes = 2, .rank = 1});
    Store store(*fabric, options);
    while (!is_filled) store.poll();
    std::uint64_t looks = 0;
    while (!is_done || looks < kStay) {
      const std::uint64_t key = looks++ % kStay;
      auto get = store.get(key);
      ASSERT_EQ(get.wait(), Status::ok);
      ASSERT_TRUE(get.found()) << "STO-10: key " << key << " is missed";
      auto absent = store.get(1'000'000 + key);
      ASSERT_EQ(absent.wait(), Status::ok);
      ASSERT_FALSE(absent.found());
    }
  });
  const auto fabric = shm.join({.group = group, .nodes = 2, .rank = 0});
  Store store(*fabric, options);
  for (std::uint64_t key = 0; key < kStay; ++key)
    ASSERT_EQ(store.put(key, "stays").wait(), Status::ok);
  is_filled = true;
  for (std::uint64_t key = kStay; key < kNew; ++key) {
    EXPECT_EQ(store.put(key, "comes").wait(), Status::ok);
    store.poll();
  }
  is_done = true;
  EXPECT_GT(store.counters().at("splits"), kNew / 10);
  reader.join();
}

}  // namespace
}  // namespace dunlin

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/sim_members.hpp"
#include "store/stores.hpp"

/// Memory that nothing uses is there for whoever wants it, in stores that do not evict (REM-17).
namespace dunlin {
namespace {

using remote::Status;

constexpr std::uint64_t kMillisecondNs = 1'000'000;
constexpr std::array<std::size_t, 12> kSizes{10,    100,   200,   400,    700,    1'100,
                                             2'000, 5'000, 9'000, 14'000, 20'000, 30'000};

/// 15 slabs of 64 KB at each home.
StoreOptions scarce_store() {
  StoreOptions options = test::small_store();
  options.memory_bytes = kMinStoreBytes;
  options.expected_keys = 8;
  return options;
}

struct RoomOnStores : test::OnStores {};

TEST_P(RoomOnStores, OneValueAtATimeHasRoomWhoeverPutsIt) {
  start(4, scarce_store());
  std::mt19937_64 random(7);
  for (std::uint64_t step = 0; step < 200; ++step) {
    const auto by = static_cast<Rank>(random() % 4), other = static_cast<Rank>(random() % 4);
    const std::size_t size = kSizes.at(random() % kSizes.size());
    ASSERT_EQ(remote::describe(cluster->end_of(at(by).put(step, std::string(size, 'v')))), "done")
        << "step " << step << ": " << size << " bytes of member " << by;
    ASSERT_TRUE(erase(other, step));
  }
  EXPECT_EQ(count(0), 0U);
}

TEST_P(RoomOnStores, ATransactionHasTheRoomThatOthersHaveLeft) {
  start(3, scarce_store());
  std::uint64_t key = 0;
  for (const Rank by : {0U, 1U})
    for (const std::size_t size : kSizes) {
      for (int copy = 0; copy < 4; ++copy) put(by, ++key, std::string(size, 'v'));
      while (key > 0) ASSERT_TRUE(erase(2, key--));
    }
  for (const std::size_t size : kSizes) {
    StoreTransaction both(at(2));
    both.put(std::uint64_t{1}, bytes(std::string(size, 't')));
    both.put(std::uint64_t{2}, bytes(std::string(size, 't')));
    ASSERT_EQ(remote::describe(cluster->end_of(both.commit())), "done") << size;
    ASSERT_TRUE(erase(0, std::uint64_t{1}));
    ASSERT_TRUE(erase(1, std::uint64_t{2}));
  }
}

TEST_P(RoomOnStores, EmptySlabsComeBackByThemselvesAndAreSeen) {
  start(2, scarce_store());
  std::uint64_t key = 0;
  for (const std::size_t size : kSizes) put(0, ++key, std::string(size, 'v'));
  std::uint64_t held = 0;
  for (const Rank rank : {0U, 1U}) {
    const StoreStatistics now = at(rank).statistics();
    EXPECT_GE(now.memory_held, now.memory_used);
    EXPECT_LE(now.memory_held, now.memory_bytes);
    held += now.memory_held;
  }
  EXPECT_GE(held, (kSizes.size() - 1) << 16) << "a slab for each size, of two the same";
  while (key > 0) EXPECT_TRUE(erase(1, key--));
  // The indexes have grown, and keep what they have taken for that.
  EXPECT_TRUE(cluster->until([&] {
    const StoreStatistics one = at(0).statistics(), other = at(1).statistics();
    return one.memory_held + other.memory_held <= 4 << 16;
  })) << "held: "
      << at(0).statistics().memory_held << ", " << at(1).statistics().memory_held;
}

TEST_P(RoomOnStores, AStoreThatIsFullSaysSoToAll) {
  StoreOptions options = scarce_store();
  options.homes = 1;
  start(3, options);
  Status last = Status::ok;
  std::uint64_t keys = 0;
  for (; last == Status::ok && keys < 10'000; ++keys) {
    last = cluster->end_of(at(static_cast<Rank>(keys % 3)).put(keys, std::string(3'000, 'v')));
  }
  EXPECT_TRUE(last == Status::no_room || last == Status::full) << remote::describe(last);
  for (const Rank by : {0U, 1U, 2U}) {
    auto put = at(by).put(std::uint64_t{1'000'000}, std::string(30'000, 'v'));
    EXPECT_EQ(cluster->end_of(put), Status::no_room);
  }
  EXPECT_EQ(count(1), keys - 1);
}

DUNLIN_RUN_ON(test::store_backends(), RoomOnStores);

TEST(StoreRoom, JoinersThatSetEraseAndLeaveTakeNothingWithThem) {
  test::Growing group(3, sim::profile("ib100"), scarce_store());
  for (Rank late = test::kFounders; late < test::kFounders + 3; ++late) {
    test::StoreMember& joiner = group.join(late);
    for (const std::size_t size : kSizes)
      for (int key = 0; key < 6; ++key) {
        const std::string name = "key " + std::to_string(key);
        group.put(late, name, std::string(size, 'v'));
        auto erase = joiner.store.erase(name);
        EXPECT_EQ(remote::describe(group.end_of(erase)), "done");
        EXPECT_TRUE(erase.changed());
      }
    joiner.group->leave();
    group.until_gone(late);
  }
  group.world.run_for(1'000 * kMillisecondNs);
  for (Rank rank = 0; rank < test::kFounders; ++rank)
    EXPECT_LE(group.at(rank).statistics().memory_held, 2U << 16) << rank;
}

TEST(StoreRoom, TheSlabsOfTheDeadServeOthers) {
  test::Mortals mortals(4, 1, sim::profile("ib100"), scarce_store());
  for (const std::size_t size : kSizes) {
    mortals.put(3, "of the dead", std::string(size, 'v'));
    EXPECT_EQ(mortals.end_of(mortals.at(2).erase("of the dead")), Status::ok);
  }
  mortals.world.crash(3);
  mortals.until_gone(3);
  for (const std::size_t size : kSizes) {
    mortals.put(1, "of another", std::string(size, 'w'));
    EXPECT_EQ(mortals.get(2, "of another").size(), size);
  }
}

// --- keys that have expired ----------------------------------------------------------------------

struct ExpiryUnderPressure : testing::Test {
  static StoreOptions options() {
    StoreOptions some = test::small_store();
    some.homes = 1;
    some.memory_bytes = 2 << 20;
    return some;
  }
  test::SimStores stores{sim::profile("ib100"), 3, options()};
};

/// Some 20 MB go through 2 MB.
TEST_F(ExpiryUnderPressure, NoPutIsRefusedWhileOthersHaveExpired) {
  std::uint64_t refused = 0;
  for (std::uint64_t key = 0; key < 20'000; ++key) {
    if (stores.end_of(stores[static_cast<Rank>(key % 3)].put(key, std::string(1'000, 'x'),
                                                             3 * kMillisecondNs)) != Status::ok)
      ++refused;
  }
  EXPECT_EQ(refused, 0U);
  EXPECT_GT(stores[0].counters().at("expired"), 17'000U);
}

TEST_F(ExpiryUnderPressure, AFullStoreHasRoomOnceItsKeysHaveExpired) {
  Status last = Status::ok;
  std::uint64_t keys = 0;
  for (; last == Status::ok; ++keys) {
    last = stores.end_of(stores[1].put(keys, std::string(5'000, 'x'), 400 * kMillisecondNs));
  }
  EXPECT_EQ(last, Status::no_room);
  EXPECT_GT(keys, 300U);
  stores.world.run_for(420 * kMillisecondNs);
  for (std::uint64_t key = 0; key < 300; ++key) {
    ASSERT_EQ(remote::describe(stores.end_of(stores[2].put(key, std::string(5'000, 'y')))), "done")
        << key;
  }
}

/// Redis erases within two seconds what has expired, if it is little.
TEST_F(ExpiryUnderPressure, TheNumberOfKeysFollowsWhatHasExpired) {
  for (std::uint64_t key = 0; key < 3'000; ++key) {
    ASSERT_EQ(
        stores.end_of(stores[1].put(key, "value", key % 2 == 0 ? 50 * kMillisecondNs : kNoExpiry)),
        Status::ok);
  }
  stores.world.run_for(2'000 * kMillisecondNs);
  auto count = stores[2].count();
  stores.end_of(count);
  EXPECT_EQ(count.keys(), 1'500U);
  EXPECT_EQ(stores[0].counters().at("expired"), 1'500U);
  auto sooner =
      stores[1].expire(std::uint64_t{1}, 10 * kMillisecondNs);  // in a chain that was looked at
  EXPECT_EQ(stores.end_of(sooner), Status::ok);
  stores.world.run_for(2'000 * kMillisecondNs);
  auto again = stores[2].count();
  stores.end_of(again);
  EXPECT_EQ(again.keys(), 1'499U);
}

}  // namespace
}  // namespace dunlin

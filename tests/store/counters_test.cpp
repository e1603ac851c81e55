#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "store/state.hpp"
#include "store/stores.hpp"
#include "support/published.hpp"

namespace dunlin {
namespace {

/// Two members on shm, both polled here.
struct StoreCountersShown : testing::Test {
  void start(const StoreOptions& options) {
    stores = std::make_unique<test::RealStores>(test::backend_of("Shm"), 2, options);
  }
  void end(StoreOperation&& operation) {
    EXPECT_EQ(remote::describe(stores->end_of(operation)), "done");
  }
  [[nodiscard]] std::optional<std::uint64_t> seen(Rank rank, const std::string& name) const {
    return test::counter_of((*stores)[rank].fabric(), "store." + name, "store=store");
  }
  std::unique_ptr<test::RealStores> stores;
};

TEST_F(StoreCountersShown, TellWhatEachMemberHoldsAsItsStatisticsDo) {
  start(test::small_store());  // its chains overflow
  for (std::uint64_t key = 0; key < 600; ++key) end((*stores)[0].put(key, "some value"));
  for (std::uint64_t key = 0; key < 100; ++key) end((*stores)[0].erase(key));
  for (const Rank rank : {0U, 1U}) {
    StoreStatistics expected;
    EXPECT_TRUE(stores->until([&] {
      expected = (*stores)[rank].statistics();  // the index grows
      return expected.occupancy() <= 0.75 && seen(rank, "main_slots") == expected.main_slots &&
             seen(rank, "keys") == expected.keys &&
             seen(rank, "used_bytes") == expected.memory_used &&
             seen(rank, "held_bytes") == expected.memory_held &&
             seen(rank, "main_slots_used") != 0U;
    })) << rank;
    EXPECT_EQ(seen(rank, "value_bytes"), expected.keys * 10);
    EXPECT_EQ(seen(rank, "memory_bytes"), expected.memory_bytes);
    EXPECT_GT(expected.memory_held, expected.memory_used);
    EXPECT_LE(seen(rank, "main_slots_used"), expected.main_slots);
    EXPECT_GT(seen(rank, "indirect_headers"), 0U);
    EXPECT_GT(seen(rank, "indirect_headers_free"), 0U);
    EXPECT_EQ(seen(rank, "limit_bytes"), SharedCounter::kUnknown);
    EXPECT_EQ(seen(rank, "evictions"), 0U);
    EXPECT_EQ(seen(rank, "splits"), (*stores)[rank].counters().at("splits"));
  }
  EXPECT_EQ(*seen(0, "keys") + *seen(1, "keys"), 500U);
}

TEST_F(StoreCountersShown, CountTheCallsOfTheirOwnProcessByKind) {
  start(test::small_store());
  Store& store = (*stores)[1];
  end(store.put("a", "1"));
  end(store.insert("b", std::as_bytes(std::span("2"))));
  for (int i = 0; i < 3; ++i) end(store.get("a"));
  end(store.get("absent"));
  end(store.erase("b"));
  end(store.count());
  EXPECT_EQ(seen(1, "others"), 1U);
  EXPECT_EQ(seen(1, "puts"), 2U);
  EXPECT_EQ(seen(1, "gets"), 4U);
  EXPECT_EQ(seen(1, "erases"), 1U);
  EXPECT_TRUE(stores->until([&] { return seen(1, "in_flight") == 0U; }));
  EXPECT_EQ(seen(1, "lock_waits"), 0U);
  EXPECT_EQ(seen(1, "cache_misses"), 1U) << "the absent key; the put has filled in the other";
  EXPECT_EQ(seen(1, "cache_hits"), 3U);
  EXPECT_EQ(seen(1, "cache_slots"), 512U) << "4096 bytes";
  EXPECT_EQ(seen(0, "gets"), 0U) << "another process's";
  const auto own = store.counters();
  EXPECT_EQ(own.at("erases"), 1U);
  EXPECT_EQ(own.at("cache_hits"), 3U);
  EXPECT_FALSE(own.contains("limit_bytes")) << "there is none";
}

TEST_F(StoreCountersShown, AreThoseOfCallsOnlyAtAClient) {
  StoreOptions options = test::small_store();
  options.homes = 1;
  start(options);
  end((*stores)[1].put("key", "value"));
  EXPECT_EQ(seen(1, "puts"), 1U);
  EXPECT_EQ(seen(1, "keys"), std::nullopt);
  EXPECT_TRUE(stores->until([&] { return seen(0, "keys") == 1U; }));
}

TEST_F(StoreCountersShown, TellALimitAndHowManyKeysItHasCost) {
  StoreOptions options = test::small_store();
  options.eviction = Eviction::lru;
  options.limit_bytes = 128 << 10;
  start(options);
  const std::string value(1000, 'x');
  for (std::uint64_t key = 0; key < 1'000; ++key) end((*stores)[0].put(key, value));
  EXPECT_TRUE(stores->until([&] {
    return seen(0, "evictions") == (*stores)[0].statistics().evictions && seen(0, "evictions") > 0U;
  }));
  EXPECT_EQ(seen(0, "limit_bytes"), 128U << 10);
  EXPECT_GT(seen(0, "waits_for_room"), 0U);
}

/// A member's own state on a simulated fabric, where nobody else changes it.
struct StoreCensus : testing::Test {
  void start(std::uint64_t expected_keys) {
    StoreOptions options = test::small_store();
    options.expected_keys = expected_keys;
    state = std::make_unique<store::State>(nullptr, progress, options);
  }
  std::uint64_t& word(std::uint64_t header, std::uint64_t at) const {
    return store::word_at(state->index.memory().data() + store::main_header_at(header) + at);
  }
  sim::World world{sim::profile("ib100"), 1, 1};
  remote::Progress progress{world.fabric(0)};
  std::unique_ptr<store::State> state;
  store::Census census;
};

TEST_F(StoreCensus, SeesLockedChainsAndUsedSlots) {
  start(200);
  word(3, store::kLockAt) = 77;
  word(5, store::kLockAt) = 78;
  word(5, kWordBytes) = 1;  // the second word of its first slot
  census.count_piece(*state);
  EXPECT_EQ(census.slots().locked_chains, 2U);
  EXPECT_EQ(census.slots().used, 1U);
  word(3, store::kLockAt) = 0;
  census.count_piece(*state);
  EXPECT_EQ(census.slots().locked_chains, 1U);
}

TEST_F(StoreCensus, CountsALargePartInPieces) {
  start(10'000);
  word(state->main_headers() - 1, store::kLockAt) = 77;
  int pieces = 0;
  while (census.slots().locked_chains == 0) {
    census.count_piece(*state);
    ASSERT_LT(++pieces, 100);
  }
  EXPECT_GT(pieces, 1);
}

}  // namespace
}  // namespace dunlin

#include "store/statistics_page.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric/memory.hpp>

#include "store/state.hpp"
#include "store/stores.hpp"
#include "support/published.hpp"

namespace dunlin {
namespace {

using store_page::Count;
using store_page::Page;

std::uint64_t begun(const Page& page, Count what) {
  return memory::load(page.begun[static_cast<std::size_t>(what)]);
}

/// Two members on shm, both polled here, and the page of each.
struct StorePages : testing::Test {
  void start(const StoreOptions& options) {
    const auto& all = test::backends();
    const auto shm = std::find_if(all.begin(), all.end(),
                                  [](const test::NodeBackend& b) { return b.name == "Shm"; });
    stores = std::make_unique<test::RealStores>(*shm, 2, options);
    for (const Rank rank : {0U, 1U}) {
      pages.push_back(test::published_page<Page>((*stores)[rank].fabric(), "store-stats:store"));
      ASSERT_NE(pages.back(), nullptr);
      EXPECT_EQ(memory::load(pages.back()->magic), store_page::kMagic);
      EXPECT_EQ(pages.back()->version, store_page::kVersion);
    }
  }
  void end(StoreOperation&& operation) {
    EXPECT_EQ(remote::describe(stores->end_of(operation)), "done");
  }
  std::unique_ptr<test::RealStores> stores;
  std::vector<std::shared_ptr<const Page>> pages;
};

TEST_F(StorePages, ShowWhatEachMemberHoldsAsItsStatisticsDo) {
  start(test::small_store());  // its chains overflow
  for (std::uint64_t key = 0; key < 600; ++key) end((*stores)[0].put(key, "some value"));
  for (std::uint64_t key = 0; key < 100; ++key) end((*stores)[0].erase(key));
  for (const Rank rank : {0U, 1U}) {
    const store_page::Part& part = pages[rank]->part;
    StoreStatistics expected;
    EXPECT_TRUE(stores->until([&] {
      expected = (*stores)[rank].statistics();  // the index grows
      return expected.occupancy() <= 0.75 && memory::load(part.main_slots) == expected.main_slots &&
             memory::load(part.keys) == expected.keys &&
             memory::load(part.used_bytes) == expected.memory_used &&
             memory::load(part.held_bytes) == expected.memory_held &&
             memory::load(part.main_slots_used) != 0;
    })) << rank;
    EXPECT_EQ(pages[rank]->is_home, 1U);
    EXPECT_EQ(part.value_bytes, expected.keys * 10);
    EXPECT_EQ(part.memory_bytes, expected.memory_bytes);
    EXPECT_GT(expected.memory_held, expected.memory_used);
    EXPECT_EQ(part.main_slots, expected.main_slots);
    EXPECT_LE(part.main_slots_used, part.main_slots);
    EXPECT_GT(part.indirect_headers, 0U);
    EXPECT_GT(part.indirect_headers_free, 0U);
    EXPECT_EQ(part.limit_bytes, 0U);
    EXPECT_EQ(part.evictions, 0U);
  }
  EXPECT_EQ(pages[0]->part.keys + pages[1]->part.keys, 500U);
}

TEST_F(StorePages, CountTheCallsOfTheirOwnProcessByKind) {
  start(test::small_store());
  Store& store = (*stores)[1];
  end(store.put("a", "1"));
  end(store.insert("b", std::as_bytes(std::span("2"))));
  for (int i = 0; i < 3; ++i) end(store.get("a"));
  end(store.get("absent"));
  end(store.erase("b"));
  end(store.count());
  const Page& page = *pages[1];
  EXPECT_TRUE(stores->until([&] { return begun(page, Count::others) == 1; }));
  EXPECT_EQ(begun(page, Count::puts), 2U);
  EXPECT_EQ(begun(page, Count::gets), 4U);
  EXPECT_EQ(begun(page, Count::erases), 1U);
  EXPECT_EQ(page.in_flight, 0U);
  EXPECT_EQ(page.lock_waits, 0U);
  EXPECT_EQ(page.cache_misses, 1U) << "the absent key; the put has filled in the other";
  EXPECT_EQ(page.cache_hits, 3U);
  EXPECT_EQ(page.cache_slots, 256U) << "4096 bytes";
  EXPECT_EQ(begun(*pages[0], Count::gets), 0U) << "another process's";
}

TEST_F(StorePages, OfAClientShowItsCallsOnly) {
  StoreOptions options = test::small_store();
  options.homes = 1;
  start(options);
  end((*stores)[1].put("key", "value"));
  EXPECT_TRUE(stores->until([&] { return begun(*pages[1], Count::puts) == 1; }));
  EXPECT_EQ(pages[1]->is_home, 0U);
  EXPECT_EQ(pages[1]->part, store_page::Part{});
  EXPECT_TRUE(stores->until([&] { return memory::load(pages[0]->part.keys) == 1; }));
}

TEST_F(StorePages, ShowALimitAndHowManyKeysItHasCost) {
  StoreOptions options = test::small_store();
  options.eviction = Eviction::lru;
  options.limit_bytes = 128 << 10;
  start(options);
  const std::string value(1000, 'x');
  for (std::uint64_t key = 0; key < 1'000; ++key) end((*stores)[0].put(key, value));
  const Page& page = *pages[0];
  EXPECT_TRUE(stores->until([&] {
    return memory::load(page.part.evictions) == (*stores)[0].statistics().evictions &&
           memory::load(page.part.evictions) > 0;
  }));
  EXPECT_EQ(page.part.limit_bytes, 128U << 10);
  EXPECT_GT(pages[0]->waits_for_room, 0U);
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

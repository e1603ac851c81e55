#include "fabric/counters/counters.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/join.hpp>

#include "fabric/counters/reader.hpp"
#include "fabric/sim_world.hpp"
#include "support/fresh_group.hpp"
#include "support/published.hpp"

namespace dunlin {
namespace {

using test::counter_of;
using test::counters_of;

struct SharedCounters : testing::Test {
  std::unique_ptr<Fabric> fabric =
      join({.group = test::fresh_group(), .members = 1, .silence_timeout_ms = 0});
};

TEST_F(SharedCounters, AreSeenWithWhatDescribesThem) {
  CounterSet store(*fabric, "store=blocks\nkind=cache");
  SharedCounter waits = store.add("store.lock_waits");
  SharedCounter bytes = store.add_level("store.bytes", CounterUnit::bytes);
  ++waits;
  waits += 4;
  bytes.set(SharedCounter::kUnknown);
  EXPECT_EQ(waits.value(), 5U);
  store.add_words("store.list", 2, CounterKind::level);
  using Values = std::map<std::string, std::uint64_t>;
  EXPECT_EQ(store.values(), (Values{{"lock_waits", 5}}))
      << "the bytes are unknown, the list has two words";
  const std::vector<CounterView> seen = counters_of(*fabric);
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].name, "store.lock_waits");
  EXPECT_EQ(seen[0].layer(), "store");
  EXPECT_EQ(seen[0].short_name(), "lock_waits");
  EXPECT_EQ(seen[0].words, std::vector<std::uint64_t>{5});
  EXPECT_EQ(seen[0].kind, CounterKind::total);
  EXPECT_EQ(seen[1].kind, CounterKind::level);
  EXPECT_EQ(seen[1].unit, CounterUnit::bytes);
  EXPECT_EQ(seen[1].words, std::vector<std::uint64_t>{SharedCounter::kUnknown});
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;
  EXPECT_EQ(seen[1].split_labels(), (Labels{{"store", "blocks"}, {"kind", "cache"}}));
}

TEST_F(SharedCounters, AreGoneWithTheirObjectAndLeaveTheirPlaceClean) {
  CounterSet stays(*fabric, "store=stays");
  stays.add("store.gets").set(1);
  {
    CounterSet goes(*fabric, "store=goes");
    goes.add("store.gets").set(77);
    for (std::uint64_t& word : goes.add_words("store.list", 100, CounterKind::level)) word = 78;
    EXPECT_EQ(counters_of(*fabric).size(), 3U);
  }
  EXPECT_EQ(counter_of(*fabric, "store.gets", "store=goes"), std::nullopt);
  CounterSet comes(*fabric, "store=comes");
  const SharedCounter gets = comes.add("store.gets");
  EXPECT_EQ(gets.value(), 0U);
  for (const std::uint64_t word : comes.add_words("store.list", 100, CounterKind::level))
    EXPECT_EQ(word, 0U);
  EXPECT_EQ(counter_of(*fabric, "store.gets", "store=stays"), 1U);
  const std::vector<CounterView> seen = counters_of(*fabric);
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_GT(seen[1].serial, 3U) << "another counter than the one that was there";
}

TEST_F(SharedCounters, TakeAsManyPagesAsTheyNeed) {
  CounterSet set(*fabric, "store=large");
  std::vector<SharedCounter> counters;
  for (std::uint64_t i = 0; i < 3 * counter_page::kCounters; ++i) {
    counters.push_back(set.add("store.number" + std::to_string(i)));
    counters.back().set(i);
  }
  const auto words = set.add_words("store.words", counter_page::kWords, CounterKind::level);
  words.back() = 9;
  EXPECT_EQ(counters_of(*fabric).size(), counters.size() + 1);
  EXPECT_EQ(counter_of(*fabric, "store.number300"), 300U);
}

TEST_F(SharedCounters, HaveTextsThatAreCutOff) {
  CounterSet set(*fabric, std::string(1'000, 'l'));
  set.add(std::string(1'000, 'n'));
  const std::vector<CounterView> seen = counters_of(*fabric);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].name, std::string(40, 'n'));
  EXPECT_EQ(seen[0].labels, std::string(192, 'l'));
}

TEST(CountersOfSim, AreInNobodysWayWhateverARegionIsCalled) {
  sim::World world(sim::profile("ideal"), 1, 1);
  CounterSet set(world.fabric(0), "store=s");
  set.add("store.gets");
  const std::string name(counter_page::kRegion);
  EXPECT_FALSE(world.fabric(0).has_region(name));
  const Region region = world.fabric(0).allocate({.name = name, .bytes = 8});
  EXPECT_EQ(world.fabric(0).generation(region), 1U);
}

TEST(CountersOfSim, CountUnseenWhereNoMemoryIsLeft) {
  sim::World world(sim::profile("ib100"), 1, 1);
  Fabric& fabric = world.fabric(0);
  std::vector<Region> regions;
  for (std::uint32_t i = 0; i < kMaxRegions; ++i)
    regions.push_back(fabric.allocate({.name = "region" + std::to_string(i), .bytes = 8}));
  CounterSet set(fabric, "store=late");
  SharedCounter gets = set.add("store.gets");
  ++gets;
  EXPECT_EQ(gets.value(), 1U);
}

/// Whatever the bytes are: no access outside, and nothing that contradicts itself.
TEST(CounterPage, IsReadWhateverIsInIt) {
  std::vector<std::uint64_t> memory(sizeof(counter_page::Page) / kWordBytes + 16);
  void* at = memory.data();
  std::size_t room = memory.size() * kWordBytes;
  auto* const page = static_cast<counter_page::Page*>(
      std::align(alignof(counter_page::Page), sizeof(counter_page::Page), at, room));
  const std::span bytes(reinterpret_cast<std::byte*>(page), sizeof *page);
  EXPECT_FALSE(read_counters(bytes)) << "zeros";
  page->magic = counter_page::kMagic;
  page->version = counter_page::kVersion;
  EXPECT_TRUE(read_counters(bytes)) << "no counter";
  EXPECT_FALSE(read_counters(bytes.first(bytes.size() - 1))) << "short";
  EXPECT_FALSE(read_counters(bytes.subspan(1))) << "not aligned";
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    for (counter_page::Record& d : page->records) {
      std::ranges::generate(std::as_writable_bytes(std::span(&d, 1)),
                            [&] { return static_cast<std::byte>(random()); });
      if (random() % 2 == 0) d.words %= 4;
      if (random() % 2 == 0) d.first_word %= counter_page::kWords;
      if (random() % 2 == 0) d.kind = d.unit = 1;
      if (random() % 2 == 0) d.name_bytes %= 41;
      if (random() % 2 == 0) d.labels_bytes %= 193;
    }
    const auto seen = read_counters(bytes);
    ASSERT_TRUE(seen);
    EXPECT_LE(seen->counters.size() + seen->damaged, counter_page::kCounters);
    for (const CounterView& view : seen->counters) {
      EXPECT_FALSE(view.words.empty());
      EXPECT_LE(view.labels.size(), 192U);
      static_cast<void>(view.split_labels());
    }
  }
  page->version = 2;
  EXPECT_FALSE(read_counters(bytes)) << "another version";
}

}  // namespace
}  // namespace dunlin

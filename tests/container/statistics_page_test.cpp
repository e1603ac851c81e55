#include "container/statistics_page.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/fabric/memory.hpp>

#include "container/clusters.hpp"
#include "support/published.hpp"

namespace dunlin {
namespace {

using container_page::Kind;
using container_page::Page;
using container_page::Slot;
using container_page::Way;

std::uint64_t calls(const Slot& slot, Way way) {
  return memory::load(slot.calls[static_cast<std::size_t>(way)]);
}

/// Two members on shm, both polled here, and the page of each.
struct ContainerPages : testing::Test {
  void SetUp() override {
    const auto& all = test::backends();
    const auto shm = std::find_if(all.begin(), all.end(),
                                  [](const test::NodeBackend& b) { return b.name == "Shm"; });
    cluster = std::make_unique<test::RealContainers>(*shm, 2);
    for (const Rank rank : {0U, 1U}) {
      pages.push_back(test::published_page<Page>(
          (*cluster)[rank].fabric(), "containers:" + std::to_string(kContainerChannel)));
      ASSERT_NE(pages.back(), nullptr);
      EXPECT_EQ(memory::load(pages.back()->magic), container_page::kMagic);
      EXPECT_EQ(pages.back()->version, container_page::kVersion);
    }
  }
  [[nodiscard]] const Slot* find(Rank rank, Kind kind, std::string_view name) const {
    for (const Slot& slot : pages[rank]->slots)
      if (memory::load(slot.kind) == static_cast<std::uint32_t>(kind) &&
          std::string_view(slot.name.data(), slot.name_bytes) == name)
        return &slot;
    return nullptr;
  }
  void end(remote::InFlight& operation) {
    EXPECT_EQ(remote::describe(cluster->end_of(operation)), "done");
  }
  std::unique_ptr<test::RealContainers> cluster;
  std::vector<std::shared_ptr<const Page>> pages;
};

TEST_F(ContainerPages, CountTheKeysOfEachPartOfAMapAndHowCallsWereDone) {
  using Map = HashMap<std::uint64_t, std::uint64_t>;
  std::vector<std::unique_ptr<Map>> maps;
  for (const Rank rank : {0U, 1U})
    maps.push_back(
        std::make_unique<Map>((*cluster)[rank], MapOptions{.name = "prices", .slots = 3'000}));
  std::uint64_t at_home = 0, elsewhere = 0;
  for (std::uint64_t key = 0; key < 100; ++key) {
    auto op = maps[0]->insert(key, key);
    end(op);
    ++(maps[0]->home_of(key) == 0 ? at_home : elsewhere);
  }
  const Slot* const first = find(0, Kind::map, "prices");
  const Slot* const second = find(1, Kind::map, "prices");
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(cluster->until([&] {
    return memory::load(first->entries) == at_home && memory::load(second->entries) == elsewhere;
  }));
  EXPECT_EQ(first->capacity, 3'000U);
  EXPECT_EQ(calls(*first, Way::local), at_home);
  EXPECT_EQ(calls(*first, Way::one_sided), elsewhere) << "no costs are measured";
  EXPECT_EQ(calls(*first, Way::by_message), 0U);
  EXPECT_EQ(calls(*second, Way::served), 0U);
}

TEST_F(ContainerPages, ShowWhichCallsGoByMessageAndWhoServesThem) {
  std::vector<std::unique_ptr<Queue<int>>> queues;
  for (const Rank rank : {0U, 1U})
    queues.push_back(std::make_unique<Queue<int>>(
        (*cluster)[rank], QueueOptions{.name = "work", .capacity = 16, .style = Style::message}));
  for (int i = 0; i < 5; ++i) {
    auto op = queues[1]->push(i);
    end(op);
  }
  const Slot* const host = find(0, Kind::queue, "work");
  const Slot* const other = find(1, Kind::queue, "work");
  ASSERT_NE(host, nullptr);
  ASSERT_NE(other, nullptr);
  EXPECT_TRUE(cluster->until([&] {
    return memory::load(host->entries) == 5 && calls(*host, Way::served) == 5 &&
           calls(*other, Way::by_message) == 5;
  }));
  EXPECT_EQ(host->capacity, 16U);
  EXPECT_EQ(calls(*other, Way::one_sided), 0U);
  EXPECT_EQ(pages[1]->in_flight, 0U);
}

TEST_F(ContainerPages, ShowAllKindsUntilTheyAreGone) {
  {
    Containers& at = (*cluster)[0];
    const Array<int> array(at, {.name = "ranks", .size = 10});
    dunlin::Counter counter(at, {.name = "done"});
    const BloomFilter<int> filter(at, {.name = "seen", .words = 4});
    const Set<int> set(at, {.name = "names", .slots = 8});
    auto op = counter.operation();
    op.add(1);
    end(op);
    const Slot* const of_counter = find(0, Kind::counter, "done");
    ASSERT_NE(of_counter, nullptr);
    EXPECT_TRUE(cluster->until([&] { return calls(*of_counter, Way::one_sided) == 1; }));
    EXPECT_EQ(of_counter->entries, container_page::kUnknown);
    ASSERT_NE(find(0, Kind::array, "ranks"), nullptr);
    EXPECT_EQ(find(0, Kind::array, "ranks")->capacity, 5U) << "of this member";
    ASSERT_NE(find(0, Kind::bloom_filter, "seen"), nullptr);
    EXPECT_EQ(find(0, Kind::bloom_filter, "seen")->capacity, 256U);
    ASSERT_NE(find(0, Kind::set, "names"), nullptr);
    EXPECT_EQ(pages[0]->containers, 4U);
  }
  EXPECT_EQ(pages[0]->containers, 0U);
  for (const Slot& slot : pages[0]->slots) EXPECT_EQ(slot.kind, 0U);
}

TEST_F(ContainerPages, CountWhatHasNoSlotAndGiveSlotsAnew) {
  Containers& at = (*cluster)[1];
  std::vector<std::unique_ptr<dunlin::Counter>> counters;
  for (std::uint32_t i = 0; i <= container_page::kMaxShown; ++i)
    counters.push_back(
        std::make_unique<dunlin::Counter>(at, CounterOptions{.name = "c" + std::to_string(i)}));
  EXPECT_EQ(pages[1]->containers, container_page::kMaxShown + 1);
  EXPECT_EQ(find(1, Kind::counter, "c64"), nullptr);
  counters[3].reset();
  const dunlin::Counter later(at, {.name = "later"});
  EXPECT_EQ(find(1, Kind::counter, "later"), &pages[1]->slots[3]);
}

}  // namespace
}  // namespace dunlin

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "container/clusters.hpp"
#include "support/published.hpp"

namespace dunlin {
namespace {

/// Two members on shm, both polled here.
struct ContainerCountersShown : testing::Test {
  void SetUp() override {
    cluster = std::make_unique<test::RealContainers>(test::backend_of("Shm"), 2);
  }
  /// `container`: "prices\nkind=map".
  [[nodiscard]] std::optional<std::uint64_t> seen(Rank rank, const std::string& container,
                                                  const std::string& name) const {
    return test::counter_of((*cluster)[rank].fabric(), "container." + name,
                            "container=" + container + "\n");
  }
  template <class Kind>
  void end(Kind& operation) {
    EXPECT_EQ(remote::describe(cluster->end_of(operation)), "done");
  }
  std::unique_ptr<test::RealContainers> cluster;
};

TEST_F(ContainerCountersShown, CountTheKeysOfEachPartOfAMapAndHowCallsWereDone) {
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
  const std::string map = "prices\nkind=map";
  EXPECT_TRUE(cluster->until(
      [&] { return seen(0, map, "entries") == at_home && seen(1, map, "entries") == elsewhere; }));
  EXPECT_EQ(seen(0, map, "capacity"), 3'000U);
  EXPECT_EQ(seen(0, map, "local"), at_home);
  EXPECT_EQ(seen(0, map, "one_sided"), elsewhere) << "no costs are measured";
  EXPECT_EQ(seen(0, map, "by_message"), 0U);
  EXPECT_EQ(seen(1, map, "served"), 0U);
}

TEST_F(ContainerCountersShown, ShowWhichCallsGoByMessageAndWhoServesThem) {
  std::vector<std::unique_ptr<Queue<int>>> queues;
  for (const Rank rank : {0U, 1U})
    queues.push_back(std::make_unique<Queue<int>>(
        (*cluster)[rank], QueueOptions{.name = "work", .capacity = 16, .style = Style::message}));
  for (int i = 0; i < 5; ++i) {
    auto op = queues[1]->push(i);
    end(op);
  }
  const std::string queue = "work\nkind=queue";
  EXPECT_TRUE(cluster->until([&] {
    return seen(0, queue, "entries") == 5U && seen(0, queue, "served") == 5U &&
           seen(1, queue, "by_message") == 5U;
  }));
  EXPECT_EQ(seen(0, queue, "capacity"), 16U);
  EXPECT_EQ(seen(1, queue, "one_sided"), 0U);
  EXPECT_TRUE(cluster->until(
      [&] { return test::counter_of((*cluster)[1].fabric(), "container.in_flight") == 0U; }));
}

TEST_F(ContainerCountersShown, ShowAllKindsUntilTheyAreGone) {
  {
    Containers& at = (*cluster)[0];
    const Array<int> array(at, {.name = "ranks", .size = 10});
    dunlin::Counter counter(at, {.name = "done"});
    const BloomFilter<int> filter(at, {.name = "seen", .words = 4});
    const Set<int> set(at, {.name = "names", .slots = 8});
    auto op = counter.add(1);
    end(op);
    const std::string done = "done\nkind=counter";
    EXPECT_TRUE(cluster->until([&] { return seen(0, done, "one_sided") == 1U; }));
    EXPECT_EQ(seen(0, done, "entries"), SharedCounter::kUnknown);
    EXPECT_EQ(seen(0, "ranks\nkind=array", "capacity"), 5U) << "of this member";
    EXPECT_EQ(seen(0, "seen\nkind=bloom", "capacity"), 256U);
    EXPECT_NE(seen(0, "names\nkind=set", "capacity"), std::nullopt);
  }
  for (const char* const name : {"done", "ranks", "seen", "names"})
    for (const CounterView& view : test::counters_of((*cluster)[0].fabric()))
      EXPECT_FALSE(view.labels.starts_with(std::string("container=") + name + "\n")) << name;
}

}  // namespace
}  // namespace dunlin

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "container/clusters.hpp"

/// Maps whose keys come and go for ever: they neither fill up nor become slower and slower.
namespace dunlin {
namespace {

using remote::Status;

using Map = HashMap<std::uint64_t, std::uint64_t>;

/// Random keys of which a given number is in the map.
struct Churn {
  explicit Churn(std::size_t most) : alive(most, 0) {}
  /// A key that goes, or 0, and one that comes.
  std::pair<std::uint64_t, std::uint64_t> draw() {
    std::uint64_t& place = alive[random() % alive.size()];
    ++last;
    return {std::exchange(place, last), last};
  }
  std::vector<std::uint64_t> alive;
  std::mt19937_64 random{11};
  std::uint64_t last = 0;
};

struct ChurningMaps : test::OnContainers {};
DUNLIN_RUN_ON(test::container_cases(), ChurningMaps);

TEST_P(ChurningMaps, DoNotFillUp) {
  constexpr std::uint32_t kSlots = 52, kRounds = 20;
  start(2);
  const auto maps = make<Map>(MapOptions{.name = "map", .slots = kSlots});
  Churn churn(2 * 36);  // the parts are not equally full
  for (std::uint32_t i = 0; i < kRounds * 2 * kSlots; ++i) {
    const auto [goes, comes] = churn.draw();
    if (goes != 0) {
      auto erased = maps[i % 2]->erase(goes);
      ASSERT_EQ(remote::describe(cluster->end_of(erased)), "done") << i;
      EXPECT_TRUE(erased.result().found()) << goes;
    }
    auto inserted = maps[i / 2 % 2]->insert(comes, i);
    ASSERT_EQ(remote::describe(cluster->end_of(inserted)), "done") << i;
    EXPECT_TRUE(inserted.result().inserted()) << comes;
  }
  std::uint64_t ready = 0;
  for (const auto& map : maps) ready += map->local_use().ready;
  EXPECT_EQ(ready, static_cast<std::uint64_t>(std::ranges::count_if(
                       churn.alive, [](std::uint64_t key) { return key != 0; })));
}

TEST_P(ChurningMaps, GrowToWhatTheyNeedAndNotBeyond) {
  start(2);
  const auto maps = make<Map>(MapOptions{.name = "map", .slots = 16, .grow_to = 4096});
  Churn churn(2 * 40);
  for (std::uint32_t i = 0; i < 2'000; ++i) {
    const auto [goes, comes] = churn.draw();
    if (goes != 0) {
      EXPECT_EQ(cluster->end_of(maps[i % 2]->erase(goes)), Status::ok);
    }
    ASSERT_EQ(remote::describe(cluster->end_of(maps[i / 2 % 2]->insert(comes, i))), "done") << i;
  }
  for (const auto& map : maps) EXPECT_LE(map->local_use().slots, 128U);
}

/// A map of N slots in which N / 1.3 keys live, and 100 N come and go.
TEST(ChurningMapsInSimulator, CostABoundedNumberOfRoundTrips) {
  constexpr std::uint32_t kSlots = 1'000;
  sim::World world(sim::profile("ideal"), 2, 1);
  std::vector<std::unique_ptr<test::ContainerMember>> all;
  std::vector<std::unique_ptr<Map>> maps;
  const MapOptions options{.name = "map", .slots = kSlots / 2, .style = Style::one_sided};
  for (Rank rank = 0; rank < 2; ++rank) {
    all.push_back(std::make_unique<test::ContainerMember>(world.fabric(rank)));
    maps.push_back(std::make_unique<Map>(all.back()->containers, options));
    world.attach(rank, [member = all.back().get()] { return member->progress.poll(); });
  }
  std::uint32_t most_of_insert = 0, most_of_find = 0;
  std::uint64_t inserts = 0, finds = 0;
  const auto trips_of = [&](auto&& call, std::uint32_t& most, std::uint64_t& sum) {
    EXPECT_TRUE(world.run_until([&] { return call.finished(); }, 1'000'000'000));
    EXPECT_EQ(remote::describe(call.status()), "done");
    most = std::max(most, call.result().round_trips());
    sum += call.result().round_trips();
    return call.result().found();
  };
  Churn churn(kSlots * 10 / 13);
  std::uint32_t unused = 0;
  std::uint64_t none = 0;
  constexpr std::uint32_t kInserts = 100 * kSlots;
  for (std::uint32_t i = 0; i < kInserts && !HasFailure(); ++i) {
    const auto [goes, comes] = churn.draw();
    if (goes != 0) {
      EXPECT_TRUE(trips_of(maps[0]->erase(goes), unused, none));
    }
    EXPECT_FALSE(trips_of(maps[0]->insert(comes, i), most_of_insert, inserts));
    if (i % 8 != 0) continue;
    EXPECT_FALSE(trips_of(maps[0]->find(UINT64_MAX - i), most_of_find, finds));
  }
  const std::uint32_t windows = maps[1]->local_use().windows;
  EXPECT_LE(windows, 8U);
  // Each window takes up to three reads; the first one two guesses before them.
  EXPECT_LE(most_of_find, 3 * windows + 2);
  EXPECT_LE(most_of_insert, 3 * windows + 6);
  EXPECT_LE(inserts, 12U * kInserts);
  EXPECT_LE(finds * 8, 12U * kInserts);
  std::cout << windows << " windows; an insert takes " << static_cast<double>(inserts) / kInserts
            << " round trips, " << most_of_insert << " at most; a find "
            << static_cast<double>(finds * 8) / kInserts << ", " << most_of_find << " at most\n";
}

}  // namespace
}  // namespace dunlin

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "container/clusters.hpp"
#include "support/errors.hpp"

/// Maps whose parts grow while they are in use.
namespace dunlin {
namespace {

using remote::Status;
using test::contains;
using test::what_is_thrown_by;

struct GrowingMaps : test::OnContainers {
  using Map = test::CountMap;
  std::vector<std::unique_ptr<Map>> maps;

  void start_maps(std::uint32_t members, const MapOptions& options) {
    start(members);
    maps = make<Map>(options);
  }
  /// What a scan of that member finds, and how often.
  std::map<std::uint64_t, int> times_in_scan(Rank by) {
    std::map<std::uint64_t, int> times;
    auto scan = maps[by]->scan();
    while (!scan.at_end()) {
      EXPECT_EQ(remote::describe(cluster->end_of(scan.next())), "done");
      scan.for_each_found([&](std::uint64_t key, std::uint32_t) { ++times[key]; });
    }
    return times;
  }
  std::uint32_t tables_of(Rank rank) { return maps[rank]->local_use().tables; }
};

DUNLIN_RUN_ON(test::map_cases(), GrowingMaps);

TEST_P(GrowingMaps, BehaveAsAStandardMapDoesBeyondTheirFirstSlots) {
  start_maps(2, {.name = "map", .slots = 4, .grow_to = 64});
  const auto model = expect_a_standard_map<std::uint64_t, std::uint32_t>(
      maps, 500, [](std::uint64_t drawn) { return drawn % 80; },
      [](std::uint64_t drawn) { return static_cast<std::uint32_t>(drawn); });
  EXPECT_GT(tables_of(0), 2U);
  EXPECT_GT(tables_of(last_with_part()), 2U);
  for (const Rank by : {0U, 1U}) {
    const auto times = times_in_scan(by);
    EXPECT_EQ(times.size(), model.size());
    for (const auto& [key, count] : times) EXPECT_EQ(count, model.contains(key) ? 1 : 0) << key;
    for (std::uint64_t key = 0; key < 80; ++key) {
      auto op = maps[by]->find(key);
      cluster->end_of(op);
      EXPECT_EQ(op.result().found(), model.contains(key)) << key;
      if (op.result().found()) {
        EXPECT_EQ(op.result().value(), model.at(key));
      }
    }
  }
}

TEST_P(GrowingMaps, OfInsertsOfAKeyThatRaceAcrossAGrowthOneSucceeds) {
  start_maps(3, {.name = "map", .slots = 2, .grow_to = 128});
  constexpr std::uint64_t kKeys = 100;
  struct Inserter {
    Map::Operation op;
    std::uint64_t next = 0;
    bool under_way = false;
  };
  std::vector<Inserter> all(3);
  std::map<std::uint64_t, int> inserted;
  EXPECT_TRUE(cluster->until([&] {
    bool ended = true;
    for (Rank by = 0; by < 3; ++by) {
      Inserter& one = all[by];
      while (one.op.finished() && one.next < kKeys) {  // of own keys without an event
        if (std::exchange(one.under_way, false)) {
          EXPECT_EQ(remote::describe(one.op.status()), "done");
          inserted[one.next++] += one.op.result().inserted() ? 1 : 0;
        } else {
          one.under_way = true;
          one.op = maps[by]->insert(one.next, by);
        }
      }
      ended = ended && one.next == kKeys;
    }
    return ended;
  }));
  for (std::uint64_t key = 0; key < kKeys; ++key) EXPECT_EQ(inserted[key], 1) << key;
  const auto times = times_in_scan(1);
  EXPECT_EQ(times.size(), kKeys);
  for (const auto& [key, count] : times) EXPECT_EQ(count, 1) << key;
}

/// By CON-G2 a call says `full` only when no table has a vacant slot.
TEST_P(GrowingMaps, AreFullWhenAllSlotsAreTaken) {
  start_maps(2, {.name = "map", .slots = 2, .grow_to = 7});
  std::set<std::uint64_t> kept;
  std::uint32_t full = 0;
  for (std::uint32_t key = 1; key <= 30; ++key) {
    const Status status = cluster->end_of(maps[key % 2]->insert(key, key));
    if (status == Status::ok) kept.insert(key);
    if (status == Status::full) ++full;
  }
  EXPECT_EQ(kept.size(), 14U);
  EXPECT_EQ(full, 16U);
  EXPECT_EQ(maps[0]->local_use().slots, last_has_no_part() ? 14U : 7U);
  EXPECT_EQ(tables_of(0), 3U);  // 2 + 2 + 3, or 4 + 4 + 6
  EXPECT_EQ(maps[0]->why_not_grown(), "");
  for (std::uint64_t key = 1; key <= 30; ++key) {
    auto op = maps[0]->find(key);
    EXPECT_EQ(cluster->end_of(op), Status::ok);
    EXPECT_EQ(op.result().found(), kept.contains(key));
  }
}

TEST_P(GrowingMaps, OfANameThatIsUsedAgainGrowAgain) {
  const MapOptions options{.name = "map", .slots = 2, .grow_to = 64};
  start_maps(2, options);
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t key = 0; key < 40; ++key) {
      if (maps[0]->home_of(key) != 0) continue;  // by message, member 1 needs no tables
      EXPECT_EQ(remote::describe(cluster->end_of(maps[1]->insert(key, key))), "done");
    }
    EXPECT_GT(tables_of(0), 2U);
    if (round > 0) break;
    maps.clear();
    maps = make<Map>(options);
  }
  for (std::uint64_t key = 0; key < 40; ++key) {
    auto op = maps[1]->find(key, Promise::both, Style::one_sided);
    EXPECT_EQ(remote::describe(cluster->end_of(op)), "done");
    EXPECT_EQ(op.result().found(), maps[0]->home_of(key) == 0);
  }
}

TEST_P(GrowingMaps, ScansFindWhatStaysOnceWhileTablesAreAdded) {
  start_maps(3, {.name = "map", .slots = 8, .grow_to = 512});
  constexpr std::uint32_t kStays = 15, kMost = 500;
  Map::Operation writer, other;
  for (std::uint32_t key = 0; key < kStays; ++key) {
    writer = maps[0]->insert(key, key);
    EXPECT_EQ(remote::describe(cluster->end_of(writer)), "done");
  }
  auto scan = maps[2]->scan();
  std::uint32_t next = kStays, scans = 0;
  std::map<std::uint64_t, int> times;
  bool reading = false;
  EXPECT_TRUE(cluster->until([&] {
    const bool may_write = next < std::min(kMost, kStays + 40 * (scans + 1));
    for (auto* op : {&writer, &other})
      if (may_write && op->finished()) {
        EXPECT_EQ(remote::describe(op->status()), "done");
        *op = maps[op == &writer ? 0 : 1]->insert(next, next);
        ++next;
      }
    if (!scan.piece().finished()) return false;
    if (std::exchange(reading, true)) {
      EXPECT_EQ(remote::describe(scan.piece().status()), "done");
      scan.for_each_found([&](std::uint64_t key, std::uint32_t) { ++times[key]; });
      if (scan.at_end()) {
        for (std::uint64_t key = 0; key < kStays; ++key) EXPECT_EQ(times[key], 1) << "CON-I1";
        for (const auto& [key, count] : times) EXPECT_EQ(count, 1) << "CON-I1: " << key;
        times.clear();
        ++scans;
      }
    }
    if (next >= kMost && scans > 13 && writer.finished() && other.finished()) return true;
    scan.next();
    return false;
  }));
  EXPECT_GT(tables_of(0), 3U);
  EXPECT_EQ(times_in_scan(0).size(), next);
}

TEST_P(GrowingMaps, GrowUnderBuffersAndChecks) {
  start(2);
  auto maps_of = make<Map>(MapOptions{.name = "map", .slots = 4, .checked = true, .grow_to = 256});
  std::vector<std::unique_ptr<MapBuffer<std::uint64_t, std::uint32_t>>> buffers;
  for (auto& map : maps_of)
    buffers.push_back(std::make_unique<MapBuffer<std::uint64_t, std::uint32_t>>(
        *map, MapBufferOptions{.name = "buffer",
                               .call = container::MapCall::add,
                               .promise = Promise::local,
                               .elements = 16}));
  for (std::uint64_t i = 0; i < 400; ++i)
    EXPECT_TRUE(cluster->until([&] { return buffers[i % 2]->try_add(i % 100, 1); }));
  for (const Rank by : {0U, 1U}) {
    auto flush = buffers[by]->begin_flush();
    EXPECT_EQ(cluster->end_of(flush), Status::ok);
    EXPECT_EQ(buffers[by]->refused(), 0U);
  }
  for (std::uint64_t key = 0; key < 100; ++key) {
    auto op = maps_of[key % 2]->find(key);
    EXPECT_EQ(remote::describe(cluster->end_of(op)), "done");
    EXPECT_EQ(op.result().value(), 4U) << key;
  }
}

TEST(GrowingMapErrors, NameWhatIsWrong) {
  sim::World world(sim::profile("ideal"), 1, 1);
  Containers containers(world.fabric(0));
  using Map = HashMap<int, int>;
  EXPECT_TRUE(
      contains(what_is_thrown_by([&] { Map(containers, {.name = "m", .slots = 8, .grow_to = 7}); }),
               "grow_to must be 0, or the option slots or more"));
  EXPECT_TRUE(contains(
      what_is_thrown_by([&] { Map(containers, {.name = "m", .slots = 1, .grow_to = 1U << 20}); }),
      "kMaxMapTables"));
}

TEST(GrowingMapErrors, APartThatCannotGrowIsFullAndSaysWhy) {
  sim::World world(sim::profile("ideal"), 1, 1);
  Containers containers(world.fabric(0));
  HashMap<int, int> map(containers, {.name = "m", .slots = 2, .grow_to = 8});
  std::vector<Region> others;
  for (int i = 0; others.size() < kMaxRegions; ++i) {
    const auto next = [&] {
      others.push_back(
          world.fabric(0).allocate({.name = "other:" + std::to_string(i), .bytes = 64}));
      world.fabric(0).announce(others.back());
    };
    if (what_is_thrown_by(next) != "nothing") break;
  }
  EXPECT_TRUE(map.insert(1, 1).outcome().ok());
  EXPECT_TRUE(map.insert(2, 2).outcome().ok());
  EXPECT_EQ(map.insert(3, 3).outcome().status, Status::full);
  EXPECT_TRUE(contains(map.why_not_grown(), "kMaxRegions")) << map.why_not_grown();
  EXPECT_TRUE(map.find(2).outcome().found());
  EXPECT_FALSE(map.find(3).outcome().found());
}

/// A member of a group, which goes on when one of them dies.
struct GrowingMember : test::ContainerMember {
  GrowingMember(Fabric& fabric, bool packed)
      : ContainerMember(fabric),
        map(containers, {.name = "map", .slots = 2, .grow_to = 64, .packed = packed}) {}
  test::CountMap map;
};

TEST(GrowingMapsInSimulator, LoseOnlyTheKeysOfAMemberThatDiesWhileTheyGrow) {
  constexpr Rank kDead = 2;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    sim::World world(test::wild_profile(), 4, seed);
    std::vector<std::unique_ptr<GrowingMember>> all;
    for (Rank rank = 0; rank < 4; ++rank) {
      all.push_back(std::make_unique<GrowingMember>(world.fabric(rank), seed % 2 == 0));
      GrowingMember& member = *all.back();
      world.attach(rank, [&member] { return member.progress.poll(); });
    }
    std::vector<test::CountMap::Operation> ops(4);
    std::vector<std::uint32_t> keys(4, 200);
    std::set<std::uint64_t> stay;
    std::uint32_t next = 0;
    const auto step = [&](std::uint32_t most) {
      bool ended = true;
      for (Rank rank = 0; rank < 4; ++rank) {
        if (world.fabric(0).failed(kDead) && rank == kDead) continue;
        if (!ops[rank].finished()) {
          ended = false;
          continue;
        }
        if (keys[rank] < 200) {
          EXPECT_TRUE(ops[rank].ok() || ops[rank].status() == Status::lost)
              << remote::describe(ops[rank].status());
          if (ops[rank].ok() && all[0]->map.home_of(keys[rank]) != kDead) stay.insert(keys[rank]);
          keys[rank] = 200;
        }
        if (next >= most || rank == kDead) continue;
        keys[rank] = next;
        ops[rank] = all[rank]->map.insert(next, next);
        ++next;
        ended = false;
      }
      return ended;
    };
    const auto before = static_cast<std::uint32_t>(10 + seed / 2 * 2);
    ASSERT_TRUE(world.run_until([&] { return step(before) || next >= before; }, 1'000'000'000));
    world.crash(kDead);
    ASSERT_TRUE(world.run_until([&] { return step(100); }, 1'000'000'000)) << "CON-P4";
    std::map<std::uint64_t, int> times;
    auto scan = all[1]->map.scan();
    bool first = true;
    ASSERT_TRUE(world.run_until(
        [&] {
          while (scan.piece().finished()) {
            if (!std::exchange(first, false)) {
              scan.for_each_found([&](std::uint64_t key, std::uint32_t) { ++times[key]; });
              if (scan.at_end()) return true;
            }
            scan.next();
          }
          return false;
        },
        1'000'000'000));
    for (const std::uint64_t key : stay) EXPECT_EQ(times[key], 1) << key;
  }
}

}  // namespace
}  // namespace dunlin

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "container/clusters.hpp"
#include "support/errors.hpp"
#include "support/troubles.hpp"

/// Maps with packed slots: what they do otherwise than others, which clusters.hpp's map_cases() and
/// the seeds test with them, too.
namespace dunlin {
namespace {

using remote::Status;
using test::contains;
using test::CountMap;
using test::what_is_thrown_by;

struct PackedMaps : test::OnContainers {
  std::vector<std::unique_ptr<CountMap>> maps;

  void start_maps(std::uint32_t members, MapOptions options) {
    start(members);
    options.packed = true;
    maps = make<CountMap>(options);
  }
  Status insert(Rank by, std::uint64_t key) { return cluster->end_of(maps[by]->insert(key, 7)); }
  [[nodiscard]] std::uint64_t elements() const {
    std::uint64_t all = 0;
    for (const auto& map : maps) all += map->local_use().ready;
    return all;
  }
};

DUNLIN_RUN_ON(test::container_cases(), PackedMaps);

/// CON-K3: else a reader could join the word of one key and another key.
TEST_P(PackedMaps, KeepTheSlotsOfErasedKeysForThese) {
  start_maps(2, {.name = "map", .slots = 4});
  std::vector<std::uint64_t> keys;
  for (std::uint64_t key = 0; key < 50; ++key)
    if (insert(key % 2, key) == Status::ok) keys.push_back(key);
  EXPECT_EQ(keys.size(), 8U);
  for (const std::uint64_t key : keys)
    EXPECT_EQ(cluster->end_of(maps[key % 2]->erase(key)), Status::ok);
  EXPECT_EQ(elements(), 0U);
  for (std::uint64_t key = 50; key < 60; ++key) EXPECT_EQ(insert(0, key), Status::full) << "CON-K3";
  for (const std::uint64_t key : keys) EXPECT_EQ(insert(1, key), Status::ok);
  EXPECT_EQ(elements(), 8U);
}

TEST_P(PackedMaps, UseTheSlotsOfAbandonedInsertsAgain) {
  start_maps(2, {.name = "map", .slots = 8});
  for (std::uint64_t key = 0; key < 16; ++key) {
    const auto given_up = maps[0]->insert(key, 1);
    cluster->pass(key % 8);
  }
  cluster->pass(100);
  std::uint32_t full = 0;
  for (std::uint64_t key = 0; key < 200; ++key) {
    const Status status = insert(1, key);
    ASSERT_TRUE(status == Status::ok || status == Status::full)
        << "CON-P5: " << remote::describe(status);
    full += status == Status::full ? 1 : 0;
  }
  EXPECT_GT(full, 0U);
  EXPECT_EQ(elements(), 16U);
}

TEST(PackedMapErrors, NameWhatIsWrong) {
  sim::World world(sim::profile("ideal"), 1, 1);
  Containers containers(world.fabric(0));
  const auto error = [&]<class K, class V>(const MapOptions& options) {
    return what_is_thrown_by([&] { HashMap<K, V>(containers, options); });
  };
  const MapOptions options{.name = "m", .slots = 1, .packed = true};
  EXPECT_TRUE(contains(error.operator()<std::uint32_t, std::uint32_t>(options), "its keys have 4"));
  EXPECT_TRUE(contains(error.operator()<std::uint64_t, std::uint64_t>(options), "its values 8"));
  MapOptions pooled = options;
  pooled.value_bytes = 1000;
  pooled.pool_bytes = 1 << 20;
  EXPECT_TRUE(contains(error.operator()<std::uint64_t, std::string>(pooled), "to a pool"));
  const Set<std::uint64_t> set(containers, options);  // a value of no bytes is allowed
}

/// CON-K2: a change of a value is one compare-and-swap, and CON-K3: one that is lost tells what the
/// slot has, so no call reads it again.
TEST(PackedMapsInSimulator, ChangeAValueInTwoRoundTripsAndOneForEachSwapThatIsLost) {
  sim::World world(sim::profile("ideal"), 3, 1);
  std::vector<std::unique_ptr<test::ContainerMember>> all;
  std::vector<std::unique_ptr<CountMap>> maps;
  const MapOptions options{.name = "map", .slots = 64, .style = Style::one_sided, .packed = true};
  for (Rank rank = 0; rank < 3; ++rank) {
    all.push_back(std::make_unique<test::ContainerMember>(world.fabric(rank)));
    maps.push_back(std::make_unique<CountMap>(all.back()->containers, options));
    world.attach(rank, [member = all.back().get()] { return member->progress.poll(); });
  }
  std::uint64_t key = 0;
  while (maps[0]->home_of(key) != 2) ++key;
  const auto end = [&](auto&& call) {
    EXPECT_TRUE(world.run_until([&] { return call.finished(); }, 1'000'000'000));
    return call.result();
  };
  EXPECT_EQ(end(maps[0]->insert(key, 1)).round_trips(), 2U);
  EXPECT_EQ(end(maps[0]->assign(key, 2)).round_trips(), 2U);
  EXPECT_EQ(end(maps[0]->add(key, 3)).value(), 5U);
  EXPECT_EQ(end(maps[0]->erase(key)).round_trips(), 2U);
  EXPECT_EQ(end(maps[0]->insert(key, 0)).round_trips(), 3U);  // its first try is for a new key
  CountMap::Operation mine = maps[0]->add(key, 10), theirs = maps[1]->add(key, 10);
  const auto one = end(mine), other = end(theirs);
  EXPECT_EQ(std::max(one.value(), other.value()), 20U);
  EXPECT_EQ(one.round_trips() + other.round_trips(), 5U);
}

/// A member of a group, which goes on when one of them dies.
struct AddingMember : test::ContainerMember {
  AddingMember(Fabric& fabric, std::uint64_t seed)
      : ContainerMember(fabric),
        map(containers, {.name = "map", .slots = 2, .grow_to = 64, .packed = true}),
        draws(seed) {}
  CountMap map;
  test::Draws draws;
  CountMap::Operation call;
  std::uint64_t key = 0;
};

/// Each ended call has added one, so no two of a key have the same sum (CON-K2).
TEST(PackedMapsInSimulator, LoseNoAddAndCountNoneTwice) {
  constexpr Rank kDead = 2;
  constexpr std::uint64_t kKeys = 64;
  std::uint64_t ended = 0;
  for (std::uint64_t seed = 1; seed <= 100 && !HasFailure(); ++seed) {
    sim::World world(test::wild_profile(), 4, seed);
    std::vector<std::unique_ptr<AddingMember>> all;
    std::vector<std::set<std::uint32_t>> sums(kKeys);
    bool stopping = false;
    const auto step = [&](AddingMember& member) {
      if (!member.call.finished()) {
        if (!stopping && member.draws.below(100) == 0) member.call.abandon();
        return;
      }
      if (member.call.begun() && member.call.ok()) {
        ++ended;
        const auto [sum, is_new] = sums[member.key].insert(member.call.result().value());
        EXPECT_TRUE(is_new) << "CON-K2: two adds have come to " << *sum << ", seed " << seed;
      }
      member.call = {};
      if (stopping) return;
      member.key = member.draws.below(static_cast<std::uint32_t>(kKeys));
      const auto style = static_cast<Style>(member.draws.below(3));
      member.call = member.map.add(member.key, 1, Promise::both, style);
    };
    for (Rank rank = 0; rank < 4; ++rank) {
      all.push_back(std::make_unique<AddingMember>(world.fabric(rank), seed * 97 + rank));
      AddingMember& member = *all.back();
      world.attach(rank, [&member, &step] {
        const std::size_t done = member.progress.poll();
        step(member);
        member.progress.fabric().wake_at(member.progress.fabric().now_ns() + 1'000);
        return done;
      });
    }
    world.run_for(2'000 + seed * 700);  // amid the inserts, or later
    world.crash(kDead);
    world.run_for(200'000);
    stopping = true;
    EXPECT_TRUE(world.run_until(
        [&] {
          for (Rank rank = 0; rank < 4; ++rank)
            if (rank != kDead && all[rank]->call.begun()) return false;
          return true;
        },
        100'000'000))
        << "CON-P4, CON-P5: an add hangs, seed " << seed;
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      if (all[0]->map.home_of(key) == kDead || sums[key].empty()) continue;
      CountMap::Operation find = all[0]->map.find(key);
      EXPECT_TRUE(world.run_until([&] { return find.finished(); }, 1'000'000'000));
      EXPECT_TRUE(find.result().found()) << "seed " << seed;
      EXPECT_GE(find.result().value(), *sums[key].rbegin()) << "CON-K2: seed " << seed;
    }
    for (auto& member : all) member->call = {};
  }
  EXPECT_GT(ended, 1'000U);
}

/// docs/container.md states these.
TEST(PackedMapMemory, IsAtMostTwiceThePayloadInAMapOfTheRightSize) {
  sim::World world(sim::profile("ideal"), 1, 1);
  Containers containers(world.fabric(0));
  constexpr std::uint32_t kEntries = 10'000;
  CountMap map(containers, {.name = "m", .slots = kEntries * 13 / 10, .packed = true});
  for (std::uint64_t key = 0; key < kEntries; ++key) EXPECT_TRUE(map.insert(key, 1).outcome().ok());
  const container::MapUse use = map.local_use();
  EXPECT_EQ(use.ready, kEntries);
  EXPECT_LE(use.slots * container::kPackedSlotBytes, 2 * use.ready * 12);
}

}  // namespace
}  // namespace dunlin

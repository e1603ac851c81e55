#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "container/clusters.hpp"
#include "support/errors.hpp"

namespace dunlin {
namespace {

using remote::Status;
using test::contains;

struct Scans : test::OnContainers {
  using Map = test::CountMap;
  std::vector<std::unique_ptr<Map>> maps;

  void start_maps(std::uint32_t members, const MapOptions& options) {
    start(members);
    maps = make<Map>(options);
  }
  void assign(Rank by, std::uint64_t key, std::uint32_t value) {
    EXPECT_EQ(remote::describe(cluster->end_of(maps[by]->assign(key, value))), "done");
  }
  /// What a scan of that member finds.
  template <class MapOfAny>
  auto found_by(MapOfAny& map, Promise promise = Promise::both) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
    auto scan = map.scan(promise);
    while (!scan.at_end()) {
      EXPECT_EQ(remote::describe(cluster->end_of(scan.next())), "done");
      scan.for_each_found(
          [&](const auto& key, const auto& value) { all.emplace_back(key, value); });
    }
    return all;
  }
};

DUNLIN_RUN_ON(test::map_cases(), Scans);

/// Under Promise::reads, CON-I2 promises what is in the map and nothing else.
TEST_P(Scans, EachMemberSeesTheElementsOfAll) {
  start_maps(3, {.name = "map", .slots = 100});
  std::map<std::uint64_t, std::uint64_t> model;
  EXPECT_TRUE(found_by(*maps[0]).empty());
  for (std::uint32_t key = 0; key < 150; ++key) {
    assign(static_cast<Rank>(key % 3), key, key * key);
    model[key] = key * key;
  }
  for (std::uint64_t key = 0; key < 150; key += 10) {
    auto erase = maps[0]->erase(key);
    EXPECT_EQ(cluster->end_of(erase), Status::ok);
    model.erase(key);
  }
  for (Rank by = 0; by < 3; ++by)
    for (const Promise promise : {Promise::both, Promise::reads}) {
      const auto all = found_by(*maps[by], promise);
      EXPECT_EQ(all.size(), model.size());
      EXPECT_EQ((std::map<std::uint64_t, std::uint64_t>(all.begin(), all.end())), model);
    }
}

TEST_P(Scans, OfPartsOfManyPieces) {
  start(2);
  struct Wide {
    std::uint64_t number;
    std::array<std::uint64_t, 100> rest;
    explicit operator std::uint64_t() const { return number; }
  };
  // 1,088 bytes each: 100 slots are more than one piece.
  const auto wide = make<HashMap<std::uint64_t, Wide>>(MapOptions{.name = "wide", .slots = 100});
  std::map<std::uint64_t, std::uint64_t> model;
  for (std::uint64_t key = 0; key < 120; ++key) {
    auto op = wide[key % 2]->insert(key, {.number = key + 1, .rest = {}}, Promise::writes);
    EXPECT_EQ(cluster->end_of(op), Status::ok);
    model[key] = key + 1;
  }
  std::map<std::uint64_t, std::uint64_t> all;
  std::uint32_t pieces = 0;
  auto scan = wide[1]->scan(Promise::reads);
  for (; !scan.at_end(); ++pieces) {
    EXPECT_EQ(cluster->end_of(scan.next()), Status::ok);
    scan.for_each_found([&](std::uint64_t key, const Wide& value) { all[key] = value.number; });
  }
  EXPECT_EQ(all, model);
  EXPECT_EQ(pieces, 4U);
}

TEST_P(Scans, FindWhatIsThereAllTheTimeOnceAndWhole) {
  start(3);
  struct Words {
    std::array<std::uint64_t, 20> words;
  };
  const auto value_of = [](std::uint64_t x) {
    Words value;
    value.words.fill(x);
    return value;
  };
  const auto wide = make<HashMap<std::uint64_t, Words>>(MapOptions{.name = "wide", .slots = 40});
  constexpr std::uint64_t kStays = 30;
  for (std::uint64_t key = 0; key < kStays; ++key) {
    EXPECT_EQ(cluster->end_of(wide[0]->insert(key, value_of(key))), Status::ok);
  }
  // Others change values, and insert and erase keys of their own.
  HashMap<std::uint64_t, Words>::Operation writer, mover;
  auto scan = wide[2]->scan();
  std::uint64_t written = 0, scans = 0, moved = 0;
  std::map<std::uint64_t, int> times;
  bool reading = false;
  EXPECT_TRUE(cluster->until([&] {
    const bool may_write = written < 20 * (scans + 1);  // or a member that writes at home is ahead
    if (may_write && writer.finished()) {
      ++written;
      writer = wide[0]->assign(written % kStays, value_of(written % kStays + 1000 * written));
    }
    if (may_write && mover.finished()) {
      const std::uint64_t key = 1000 + ++moved / 2 % 8;
      if (moved % 2 == 0) mover = wide[1]->assign(key, value_of(key));
      if (moved % 2 == 1) mover = wide[1]->erase(key);
    }
    if (!scan.piece().finished()) return false;
    if (reading) {
      EXPECT_EQ(remote::describe(scan.piece().status()), "done");
      scan.for_each_found([&](std::uint64_t key, const Words& value) {
        ++times[key];
        EXPECT_EQ(value.words[0] % 1000, key % 1000);
        for (const std::uint64_t word : value.words)
          EXPECT_EQ(word, value.words[0]) << "CON-I1: torn";
      });
      if (scan.at_end()) {
        for (std::uint64_t key = 0; key < kStays; ++key) EXPECT_EQ(times[key], 1) << key;
        times.clear();
        ++scans;
      }
    }
    reading = true;
    scan.next();
    return scans >= 60;
  }));
}

TEST_P(Scans, OfSetsAndStringsByOneMember) {
  start(1);  // which waits by itself
  Set<std::string> set((*cluster)[0],
                       {.name = "set", .slots = 50, .style = GetParam().style, .key_bytes = 9});
  std::set<std::string> model, all;
  for (int i = 0; i < 30; ++i) {
    EXPECT_TRUE(set.insert(std::to_string(i)).outcome().ok());
    model.insert(std::to_string(i));
  }
  EXPECT_EQ(set.for_each([&](const std::string& key) { all.insert(key); }), Status::ok);
  EXPECT_EQ(all, model);
}

TEST_P(Scans, AreCheckedAsFindsAre) {
  start_maps(3, {.name = "map", .slots = 100, .checked = true});
  std::uint64_t key = 0;
  while (maps[0]->home_of(key) != 1) ++key;
  assign(0, key, 7);
  EXPECT_EQ(found_by(*maps[2], Promise::reads).size(), 1U);
  Map::Operation write;
  auto scan = maps[2]->scan(Promise::reads);
  EXPECT_TRUE(cluster->until([&] {
    if (write.status() == Status::broken_promise || scan.piece().status() == Status::broken_promise)
      return true;
    if (write.finished()) write = maps[0]->assign(key, 8, Promise::both, Style::message);
    if (scan.piece().finished()) scan.next();
    return false;
  }));
  const Rank later = write.status() == Status::broken_promise ? 0 : 2;
  const std::string& said = (*cluster)[later].broken_promise();
  EXPECT_TRUE(contains(said, "scan of member '" + (*cluster)[0].fabric().member_name(2))) << said;
  EXPECT_TRUE(contains(said, "assign of member '" + (*cluster)[0].fabric().member_name(0))) << said;
}

/// A member of a group, which goes on when one of them dies.
struct ScanningMember : test::ContainerMember {
  ScanningMember(Fabric& fabric, bool packed)
      : ContainerMember(fabric), map(containers, {.name = "map", .slots = 30, .packed = packed}) {}
  test::CountMap map;
};

/// By CON-I3 a scan leaves out a part that cannot be read, and says so.
TEST(ScansInSimulator, LeaveThePartOfADeadMemberOutAndSaySo) {
  constexpr Rank kDead = 2;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    sim::World world(test::wild_profile(), 4, seed);
    std::vector<std::unique_ptr<ScanningMember>> all;
    for (Rank rank = 0; rank < 4; ++rank) {
      all.push_back(std::make_unique<ScanningMember>(world.fabric(rank), seed % 4 > 1));
      ScanningMember& member = *all.back();
      world.attach(rank, [&member] { return member.progress.poll(); });
    }
    test::CountMap::Operation insert;
    std::set<std::uint64_t> stay;
    std::uint32_t next = 0;
    ASSERT_TRUE(world.run_until(
        [&] {
          while (insert.finished() && next < 40) {
            if (all[0]->map.home_of(next) != kDead) stay.insert(next);
            insert = all[0]->map.insert(next, next);
            ++next;
          }
          return next == 40 && insert.finished();
        },
        1'000'000'000));
    auto scan = all[1]->map.scan();
    if (seed % 2 == 0) scan.next();
    world.run_for(seed * 200);
    world.crash(kDead);
    std::set<std::uint64_t> found;
    std::uint32_t lost = 0;
    bool first = seed % 2 != 0;
    ASSERT_TRUE(world.run_until(
        [&] {
          while (scan.piece().finished()) {
            if (!std::exchange(first, false)) {
              if (scan.piece().status() == Status::lost) ++lost;
              scan.for_each_found([&](std::uint64_t key, std::uint32_t) { found.insert(key); });
              if (scan.at_end()) return true;
            }
            scan.next();
          }
          return false;
        },
        1'000'000'000));
    EXPECT_EQ(lost, 1U);
    EXPECT_EQ(found, stay);
  }
}

}  // namespace
}  // namespace dunlin

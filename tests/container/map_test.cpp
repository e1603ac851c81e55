#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "container/clusters.hpp"
#include "support/errors.hpp"

namespace dunlin {
namespace {

using remote::Status;
using test::contains;
using test::what_is_thrown_by;

constexpr std::array kPromises{Promise::both, Promise::writes, Promise::reads};

struct Maps : test::OnContainers {
  using Map = test::CountMap;
  std::vector<std::unique_ptr<Map>> maps;

  void start_maps(std::uint32_t members, std::uint32_t slots) {
    start(members);
    maps = make<Map>(MapOptions{.name = "map", .slots = slots});
  }
  Status status_of(Rank by, std::uint64_t key, std::uint32_t value,
                   Promise promise = Promise::both) {
    return cluster->end_of(maps[by]->insert(key, value, promise));
  }
  bool insert(Rank by, std::uint64_t key, std::uint32_t value, Promise promise = Promise::both) {
    auto op = maps[by]->insert(key, value, promise);
    EXPECT_EQ(remote::describe(cluster->end_of(op)), "done");
    return op.result().inserted();
  }
  bool assign(Rank by, std::uint64_t key, std::uint32_t value) {
    auto op = maps[by]->assign(key, value);
    EXPECT_EQ(remote::describe(cluster->end_of(op)), "done");
    return op.result().found();
  }
  bool erase(Rank by, std::uint64_t key) {
    auto op = maps[by]->erase(key);
    EXPECT_EQ(remote::describe(cluster->end_of(op)), "done");
    return op.result().found();
  }
  /// The value, or all bits.
  std::uint32_t find(Rank by, std::uint64_t key, Promise promise = Promise::both) {
    auto op = maps[by]->find(key, promise);
    EXPECT_EQ(remote::describe(cluster->end_of(op)), "done");
    return op.result().found() ? op.result().value() : UINT32_MAX;
  }
};

DUNLIN_RUN_ON(test::map_cases(), Maps);

/// CON-M4 promises what this test checks.
TEST_P(Maps, WhatOneMemberInsertsAllFindUnderEachPromise) {
  start_maps(3, 100);
  std::uint32_t key = 0;
  for (const Promise promise : kPromises)
    for (const Rank by : {0U, 1U, 2U})
      for (int i = 0; i < 10; ++i) {
        ++key;
        EXPECT_TRUE(insert(by, key, key * 3, promise));
        EXPECT_FALSE(insert((by + 1) % 3, key, 5, promise));
        for (const Promise later : kPromises)
          for (const Rank reader : {0U, 1U, 2U}) EXPECT_EQ(find(reader, key, later), key * 3);
      }
  EXPECT_EQ(find(0, key + 1), UINT32_MAX);
}

TEST_P(Maps, BehavesAsAStandardMapDoes) {
  start_maps(2, 60);
  expect_a_standard_map<std::uint64_t, std::uint32_t>(
      maps, 600, [](std::uint64_t drawn) { return drawn % 80; },
      [](std::uint64_t drawn) { return static_cast<std::uint32_t>(drawn); });
}

TEST_P(Maps, OfWordsBehaveAsAStandardMapDoes) {
  start(2);
  expect_a_standard_map<std::uint64_t, std::uint64_t>(
      make<HashMap<std::uint64_t, std::uint64_t>>(MapOptions{.name = "words", .slots = 60}), 600,
      [](std::uint64_t drawn) { return drawn % 80; }, [](std::uint64_t drawn) { return drawn; });
}

TEST_P(Maps, AFullPartSaysSoAndKeepsItsKeys) {
  start_maps(2, 4);
  std::set<std::uint64_t> kept;
  std::uint32_t full = 0;
  for (std::uint32_t key = 1; key <= 20; ++key) {
    const Status status = status_of(0, key, key);
    if (status == Status::ok) kept.insert(key);
    if (status == Status::full) ++full;
  }
  EXPECT_EQ(kept.size(), 8U);
  EXPECT_EQ(full, 12U);
  for (std::uint32_t key = 1; key <= 20; ++key)
    EXPECT_EQ(find(1, key), kept.contains(key) ? key : UINT32_MAX);
}

TEST_P(Maps, OfManyInsertsOfAKeyAtOnceOneSucceeds) {
  start_maps(3, 50);
  for (const Promise promise : {Promise::both, Promise::writes}) {
    for (std::uint64_t key = 0; key < 20; ++key) {
      const std::uint64_t k = key + (promise == Promise::both ? 0 : 100);
      std::vector<Map::Operation> all;
      for (const Rank by : {0U, 1U, 2U, 0U, 1U, 2U})
        all.push_back(maps[by]->insert(k, by, promise));
      int inserted = 0;
      for (auto& op : all) {
        EXPECT_EQ(cluster->end_of(op), Status::ok);
        if (op.result().inserted()) ++inserted;
      }
      EXPECT_EQ(inserted, 1);
    }
  }
}

TEST_P(Maps, ValuesOfManyLinesAreNeverTorn) {
  start(3);
  struct Value {
    std::array<std::uint64_t, 40> words;
  };
  auto wide = make<HashMap<std::uint32_t, Value>>(MapOptions{.name = "wide", .slots = 8});
  const auto value_of = [](std::uint64_t x) {
    Value value;
    value.words.fill(x);
    return value;
  };
  HashMap<std::uint32_t, Value>::Operation writer, other, reader;
  std::uint64_t rounds = 0, seen = 0;
  EXPECT_TRUE(cluster->until([&] {
    const bool may_write = rounds < 10 + 4 * seen;  // or a member that writes at home starves it
    if (may_write && writer.finished()) writer = wide[0]->assign(7, value_of(++rounds));
    if (may_write && other.finished()) other = wide[1]->assign(7, value_of(++rounds));
    if (reader.finished()) {
      if (reader.ok() && reader.result().found()) {
        ++seen;
        const Value value = reader.result().value();
        for (const std::uint64_t word : value.words) EXPECT_EQ(word, value.words[0]);
      }
      reader = wide[2]->find(7);
    }
    return seen >= 200;
  }));
}

/// Where calls end at once, nothing else would poll while it lasts.
TEST_P(Maps, PollsWhileItFindsMany) {
  struct Counted final : remote::Part {
    std::size_t poll_part() override {
      ++polls;
      return 0;
    }
    void members_changed() override {}
    int polls = 0;
  };
  start(1);
  Map map((*cluster)[0],
          {.name = "long", .slots = 64, .style = GetParam().style, .packed = GetParam().packed});
  Counted counted;
  (*cluster)[0].progress().add(counted);
  const std::vector<std::uint64_t> keys(5000, 1);
  std::vector<Found<std::uint32_t>> found(keys.size());
  EXPECT_EQ(map.find_many(keys, found), Status::ok);
  EXPECT_GT(counted.polls, 0);
  (*cluster)[0].progress().remove(counted);
}

TEST_P(Maps, InsertsManyAndFindsThem) {
  start(1);  // which waits by itself
  Map map((*cluster)[0],
          {.name = "many", .slots = 2000, .style = GetParam().style, .packed = GetParam().packed});
  std::vector<std::pair<std::uint64_t, std::uint32_t>> elements;
  for (std::uint32_t i = 0; i < 1000; ++i) elements.emplace_back(i * 7, i);
  EXPECT_EQ(map.insert_many(elements, Promise::writes), Status::ok);
  EXPECT_EQ(map.local_use().ready, 1000U);
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < 1000; ++i) keys.push_back(i * 7);
  keys.push_back(5);  // which nobody has inserted
  std::vector<Found<std::uint32_t>> found(keys.size());
  EXPECT_EQ(map.find_many(keys, found, Promise::reads), Status::ok);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_TRUE(found[i].found());
    EXPECT_EQ(found[i].value(), i);
  }
  EXPECT_TRUE(found[1000].ok());
  EXPECT_FALSE(found[1000].found());
  for (auto& element : elements) element.second += 5;
  EXPECT_EQ(map.assign_many(elements), Status::ok);
  keys.resize(500);
  EXPECT_EQ(map.erase_many(keys), Status::ok);
  std::map<std::uint64_t, std::uint32_t> left;
  map.for_each_local([&](std::uint64_t key, std::uint32_t value) { left[key] = value; });
  EXPECT_EQ((std::map<std::uint64_t, std::uint32_t>(elements.begin() + 500, elements.end())), left);
}

TEST_P(Maps, ALateMemberFindsTheMapAndCallsWaitForIt) {
  start(2);
  const Rank home = last_with_part();
  const MapOptions options{
      .name = "late", .slots = 50, .style = GetParam().style, .packed = GetParam().packed};
  Map early((*cluster)[1 - home], options);
  std::vector<Map::Operation> all;
  for (std::uint32_t key = 0; key < 10; ++key) all.push_back(early.insert(key, key));
  int ended = 0;
  cluster->pass(100);
  for (const auto& op : all) ended += op.finished() ? 1 : 0;
  EXPECT_LT(ended, 10);
  Map late((*cluster)[home], options);
  for (auto& op : all) EXPECT_EQ(cluster->end_of(op), Status::ok);
  for (std::uint64_t key = 0; key < 10; ++key) {
    auto op = late.find(key);
    cluster->end_of(op);
    EXPECT_TRUE(op.result().found());
  }
}

TEST_P(Maps, AMemberWithAnotherLayoutIsRefused) {
  start(2);
  const MapOptions options{.name = "odd", .slots = 50, .style = GetParam().style};
  MapOptions others = options;
  others.packed = true;
  const Rank home = last_with_part();
  Map mine((*cluster)[1 - home], options);
  Map theirs((*cluster)[home], others);
  std::uint32_t refused = 0;
  for (std::uint32_t key = 0; key < 10; ++key) {
    if (cluster->end_of(mine.insert(key, key)) == Status::refused) ++refused;
  }
  EXPECT_GT(refused, 0U);
  EXPECT_EQ(refused == 10U, last_has_no_part());
}

TEST_P(Maps, AnAbandonedInsertLeavesNothingReserved) {
  start_maps(2, 200);
  for (std::uint64_t key = 0; key < 60; ++key) {
    {
      const auto op = maps[0]->insert(key, 1);
      cluster->pass(key % 20);
    }
    EXPECT_EQ(status_of(1, key, 2), Status::ok);
    const std::uint32_t value = find(0, key);
    EXPECT_TRUE(value == 1 || value == 2) << value;
  }
}

TEST(MapErrors, NameWhatIsWrong) {
  sim::World world(sim::profile("ideal"), 1, 1);
  Containers containers(world.fabric(0));
  using Map = HashMap<int, int>;
  EXPECT_TRUE(contains(what_is_thrown_by([&] { Map(containers, {.name = "", .slots = 1}); }),
                       "its name must have 1 to"));
  EXPECT_TRUE(contains(what_is_thrown_by([&] { Map(containers, {.name = "a\nb", .slots = 1}); }),
                       "printable ASCII"));
  EXPECT_TRUE(contains(what_is_thrown_by([&] { Map(containers, {.name = "m"}); }), "1 to"));
  const Map map(containers, {.name = "m", .slots = 1});
  EXPECT_TRUE(contains(what_is_thrown_by([&] { Map(containers, {.name = "m", .slots = 1}); }),
                       "this name already"));
  using Wide = HashMap<int, std::array<int, 2000>>;
  EXPECT_TRUE(contains(what_is_thrown_by([&] { Wide(containers, {.name = "w", .slots = 1}); }),
                       "kMaxElementBytes"));
}

TEST_P(Maps, ASetHoldsKeysOnly) {
  start(2);
  auto sets = make<Set<std::uint32_t>>(MapOptions{.name = "set", .slots = 40});
  for (std::uint32_t key = 0; key < 20; ++key) {
    auto op = sets[key % 2]->insert(key);
    EXPECT_EQ(cluster->end_of(op), Status::ok);
    EXPECT_FALSE(op.result().found());
  }
  std::set<std::uint32_t> all;
  for (const auto& set : sets) set->for_each_local([&](std::uint32_t key) { all.insert(key); });
  EXPECT_EQ(all.size(), 20U);
  auto there = sets[0]->contains(7), not_there = sets[0]->contains(99);
  cluster->end_of(there);
  cluster->end_of(not_there);
  EXPECT_TRUE(there.result().found());
  EXPECT_FALSE(not_there.result().found());
  auto gone = sets[1]->erase(7);
  cluster->end_of(gone);
  EXPECT_TRUE(gone.result().found());
  auto after = sets[0]->contains(7);
  cluster->end_of(after);
  EXPECT_FALSE(after.result().found());
}

}  // namespace
}  // namespace dunlin

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "container/clusters.hpp"
#include "container/map.hpp"
#include "container/map_slot.hpp"

/// Maps in which ever new keys come and go: what the erased ones have left is used again.
namespace dunlin {
namespace {

using container::MapCall;
using container::Sight;
using remote::Status;

struct ReusedSlots : test::OnContainers {
  using Map = HashMap<std::uint64_t, std::uint64_t>;
  std::vector<std::unique_ptr<Map>> maps;

  void start_maps(std::uint32_t members, const MapOptions& options) {
    start(members);
    maps = make<Map>(options);
  }
  Status end_of(Map::Operation&& op) { return cluster->end_of(op); }
  Status end_of(Map::Operation& op) { return cluster->end_of(op); }
  bool insert(Rank by, std::uint64_t key, Promise promise = Promise::both) {
    auto op = maps[by]->insert(key, key + 1, promise);
    EXPECT_EQ(remote::describe(end_of(op)), "done") << key;
    return op.result().inserted();
  }
  bool erase(Rank by, std::uint64_t key) {
    auto op = maps[by]->erase(key);
    EXPECT_EQ(remote::describe(end_of(op)), "done") << key;
    return op.result().found();
  }
  std::map<std::uint64_t, int> times_in_scan(Rank by) {
    std::map<std::uint64_t, int> times;
    auto scan = maps[by]->scan();
    while (!scan.at_end()) {
      EXPECT_EQ(remote::describe(cluster->end_of(scan.next())), "done");
      scan.for_each_found([&](std::uint64_t key, std::uint64_t) { ++times[key]; });
    }
    return times;
  }
};

DUNLIN_RUN_ON(test::container_cases(), ReusedSlots);

TEST_P(ReusedSlots, KeysComeAndGoWithoutEnd) {
  for (const std::uint32_t grow_to : {0U, 64U}) {
    start_maps(2, {.name = "map", .slots = 16, .grow_to = grow_to});
    for (std::uint64_t key = 0; key < 400; ++key) {
      const Rank by = static_cast<Rank>(key % 2);
      EXPECT_TRUE(insert(by, key, key % 3 == 0 ? Promise::writes : Promise::both));
      EXPECT_FALSE(insert(1 - by, key)) << "CON-M2";
      if (key >= 4) {
        EXPECT_TRUE(erase(by, key - 4)) << key - 4;
      }
      if (HasFailure()) return;
    }
    for (const Rank by : {0U, 1U}) {
      const auto times = times_in_scan(by);
      EXPECT_EQ(times.size(), 4U);
      for (const auto& [key, count] : times) EXPECT_EQ(count, 1) << key;
    }
    maps.clear();
    cluster.reset();
  }
}

TEST_P(ReusedSlots, AreThoseOfAStandardMap) {
  start_maps(3, {.name = "map", .slots = 24});
  std::map<std::uint64_t, std::uint64_t> model;
  std::mt19937_64 random(5);
  std::vector<std::uint64_t> recent;
  for (std::uint64_t i = 0; i < 1'500; ++i) {
    if (recent.size() < 16 || random() % 4 == 0) recent.push_back(random());
    if (recent.size() > 16) recent.erase(recent.begin());
    const std::uint64_t key = recent[random() % recent.size()];
    const Rank by = static_cast<Rank>(random() % 3);
    const bool there = model.contains(key);
    Map::Operation op;
    const std::uint64_t call = random() % 5;
    if (call == 0 || model.size() > 20) {
      const std::uint64_t goes = model.size() > 20 ? model.begin()->first : key;
      const bool was_there = model.erase(goes) == 1;
      op = maps[by]->erase(goes);
      ASSERT_EQ(remote::describe(end_of(op)), "done") << i;
      EXPECT_EQ(op.result().found(), was_there) << i;
      continue;
    }
    if (call == 1) {
      op = maps[by]->find(key);
    } else if (call == 2) {
      op = maps[by]->assign(key, i);
      model[key] = i;
    } else if (call == 3) {
      op = maps[by]->add(key, 1);
      ++model[key];
    } else {
      op = maps[by]->insert(key, i);
      model.try_emplace(key, i);
    }
    ASSERT_EQ(remote::describe(end_of(op)), "done") << i;
    EXPECT_EQ(op.result().found(), there) << i;
    auto get = maps[by]->find(key);
    ASSERT_EQ(remote::describe(end_of(get)), "done") << i;
    ASSERT_EQ(get.result().found(), model.contains(key)) << i;
    if (get.result().found()) {
      EXPECT_EQ(get.result().value(), model[key]) << i;
    }
  }
  for (const Rank by : {0U, 1U, 2U}) {
    const auto times = times_in_scan(by);
    EXPECT_EQ(times.size(), model.size());
    for (const auto& [key, count] : times) EXPECT_EQ(count, model.contains(key) ? 1 : 0) << key;
  }
}

/// All members insert each key at once, some give up; each key is there once.
/// CON-M5 keeps a slot from being offered to two keys.
TEST_P(ReusedSlots, OfInsertsOfAKeyThatRaceForThemOneSucceeds) {
  start_maps(3, {.name = "map", .slots = 8});
  for (std::uint64_t key = 0; key < 40; ++key) {  // until all slots have been used
    EXPECT_TRUE(insert(0, 1'000 + key));
    EXPECT_TRUE(erase(1, 1'000 + key));
  }
  std::mt19937_64 random(7);
  for (std::uint64_t key = 0; key < 150; ++key) {
    std::vector<Map::Operation> all;
    for (Rank by = 0; by < 3; ++by) {
      all.push_back(maps[by]->insert(key, by, key % 4 == 0 ? Promise::writes : Promise::both));
      if (by == 1) all.push_back(maps[by]->insert(key + 10'000, by));
    }
    const bool gives_up = random() % 3 == 0;
    if (gives_up) {
      std::uint64_t polls = random() % 40;
      cluster->until([&] { return polls-- == 0; });
      all.back().abandon();
    }
    int inserted = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i + 1 == all.size() && gives_up) continue;
      ASSERT_EQ(remote::describe(end_of(all[i])), "done") << key;
      if (i != 2) inserted += all[i].result().inserted() ? 1 : 0;
    }
    EXPECT_LE(inserted, 1) << "CON-M2";
    EXPECT_TRUE(inserted == 1 || gives_up);
    EXPECT_EQ(times_in_scan(0)[key], 1) << "CON-M2: " << key;
    EXPECT_TRUE(erase(2, key));
    EXPECT_TRUE(erase(0, key + 10'000));
    if (HasFailure()) return;
  }
  EXPECT_TRUE(times_in_scan(1).empty());
}

TEST_P(ReusedSlots, AMapOfWhichEachSlotHasAnElementIsFull) {
  start_maps(2, {.name = "map", .slots = 4});
  std::vector<std::uint64_t> keys;
  std::uint32_t full = 0;
  for (std::uint64_t key = 0; key < 100; ++key) {
    const Status status = end_of(maps[key % 2]->insert(key, key));
    EXPECT_TRUE(status == Status::ok || status == Status::full) << remote::describe(status);
    if (status == Status::ok) keys.push_back(key);
    full += status == Status::full ? 1 : 0;
  }
  EXPECT_EQ(keys.size(), 8U);
  EXPECT_EQ(full, 92U);
  for (const std::uint64_t key : keys) {
    auto find = maps[0]->find(key);
    EXPECT_EQ(remote::describe(end_of(find)), "done");
    EXPECT_TRUE(find.result().found());
  }
}

/// Two keys whose slots have equal words but for what their calls write.
struct AlikeKeys {
  AlikeKeys() {
    while (fingerprint(other) != fingerprint(key) || other == key) ++other;
  }
  static std::uint16_t fingerprint(const std::uint64_t& of) {
    return container::fingerprint_of(container::hash_of(&of, sizeof of));
  }
  std::uint64_t key = 1, other = 1;
};

/// CON-S4: a slot has gone from `key` to `other`, which was erased, between a read of the slot's
/// payload and that of its word.
TEST(ReadsOfReusedSlots, TakeNoKeyOfAFormerOwner) {
  const AlikeKeys keys;
  const std::uint16_t print = AlikeKeys::fingerprint(keys.key);
  const auto word = [&](std::uint64_t version, container::word::State state) {
    return container::word::make(version, 1, 0, print, state);
  };
  const std::uint64_t former = word(5, container::word::ready), of_key = keys.key;
  const auto sight = [&](std::uint64_t its_word, std::uint64_t key) {
    container::SmallMapSlot slot;
    slot.word = its_word;
    slot.payload[0] = of_key;
    slot.payload[1] = 0;
    slot.stamp = former;
    const auto* const wanted = reinterpret_cast<const std::byte*>(&key);
    const Sight in_registers =
        container::sight_of(slot, MapCall::insert, print, wanted, sizeof key);
    std::array<std::byte, sizeof slot> image;
    std::memcpy(image.data(), &slot, sizeof slot);
    const container::SlotShape shape = container::shape_of(16);
    const container::SlotImage view{shape, image.data()};
    EXPECT_EQ(container::sight_of(view, MapCall::insert, print, wanted, sizeof key), in_registers);
    return in_registers;
  };
  EXPECT_EQ(sight(former, keys.key), Sight::present);
  EXPECT_EQ(sight(word(5, container::word::erased), keys.key), Sight::erased);
  EXPECT_EQ(sight(word(7, container::word::erased), keys.key), Sight::wait) << "CON-S4";
  EXPECT_EQ(sight(word(6, container::word::ready), keys.key), Sight::wait);
  for (const auto state :
       {container::word::ready, container::word::changing, container::word::erased})
    EXPECT_EQ(sight(word(7, state), keys.other), Sight::wait) << "CON-S4: perhaps of this key";
  EXPECT_EQ(sight(former, keys.other), Sight::other);
  EXPECT_EQ(sight(word(5, container::word::erased), keys.other), Sight::other);
  EXPECT_EQ(sight(word(7, container::word::half), keys.other), Sight::other);
  const container::Claimant by{.self = 1, .serial = 3, .fingerprint = print};
  const std::uint64_t erased =
      container::claim_word(MapCall::erase, Sight::present, Promise::both, former, by);
  EXPECT_EQ(sight(erased, keys.key), Sight::erased);
  const std::uint64_t given_up = container::claim_word(MapCall::erase, Sight::half, Promise::both,
                                                       word(6, container::word::half), by);
  EXPECT_EQ(sight(given_up, keys.key), Sight::other);
}

/// A home of which all slots have an erased key, and a caller of another member.
struct OfferedSlots : testing::Test {
  static constexpr std::uint32_t kSlots = 16;
  void start(Style style) {
    const container::MapSpec spec{
        .name = "map", .key_bytes = 8, .value_bytes = 8, .slots = kSlots, .style = style};
    caller = std::make_unique<container::MapState>(cluster[0], spec);
    home = std::make_unique<container::MapState>(cluster[1], spec);
    for (std::uint64_t key = 0; keys.size() < kSlots + 1; ++key)
      if (home->home_of(container::hash_of(&key, sizeof key)) == 1) keys.push_back(key);
    for (const MapCall call : {MapCall::insert, MapCall::erase})
      for (std::uint32_t i = 0; i < kSlots; ++i) {
        auto under_way = begin(call, keys[i]);
        ASSERT_EQ(cluster.end_of(under_way), Status::ok);
      }
  }
  remote::Call<container::MapResult> begin(MapCall call, std::uint64_t key) {
    const std::array<std::uint64_t, 2> payload{key, key};
    return {cluster[0].progress(),
            caller->run(container::MapRequest(*caller, call, Promise::both, Style::automatic,
                                              std::as_bytes(std::span(payload)).data()))};
  }
  test::SimContainers cluster{sim::profile("ib100"), 2};
  std::unique_ptr<container::MapState> caller, home;
  std::vector<std::uint64_t> keys;
};

TEST_F(OfferedSlots, AreNotRememberedWithoutEnd) {
  start(Style::one_sided);
  std::size_t most = 0, offered = 0;
  for (std::uint64_t hash = 1; hash <= 20'000; ++hash) {
    if (home->room_behind(1, container::mixed(hash)).offered) ++offered;
    most = std::max(most, home->offers.size());
    if (!home->opening.empty()) cluster.pass(10);
  }
  EXPECT_GT(offered, 10'000U);
  EXPECT_LE(most, 4096U);
}

/// The processor claims slots where messages write, so it makes offers void, too: here its atomics
/// and the fabric's do not exclude each other.
TEST_F(OfferedSlots, BecomeVoidByTheAtomicsOfTheStyle) {
  start(Style::message);
  ASSERT_FALSE(home->coherent);
  const auto offered = home->room_behind(1, container::mixed(1)).offered;
  ASSERT_TRUE(offered);
  home->opening.start(home->void_offers());
  EXPECT_NE(home->own_word(home->first, offered->slot), offered->word);
  EXPECT_TRUE(home->offers.empty());
}

/// Each offer is taken by another call before this one can claim it.
TEST_F(OfferedSlots, MayBeLostAnyNumberOfTimes) {
  start(Style::one_sided);
  auto insert = begin(MapCall::insert, keys.back());
  std::uint32_t lost = 0;
  EXPECT_TRUE(cluster.until([&] {
    for (const auto& [hash, offered] : home->offers) {
      std::uint64_t& word = home->word_at_own(home->first, offered.slot);
      if (lost < 1'100 && memory::load(word) == offered.word) {
        memory::store(word, offered.word ^ std::uint64_t{++lost} << 40);
      }
    }
    return insert.finished();
  }));
  EXPECT_EQ(lost, 1'100U);
  EXPECT_EQ(remote::describe(insert.status()), "done");
}

}  // namespace
}  // namespace dunlin

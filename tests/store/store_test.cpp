#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "store/stores.hpp"
#include "support/errors.hpp"

namespace dunlin {
namespace {

using remote::Status;
using test::contains;
using test::what_is_thrown_by;

struct Stores : test::OnStores {};
DUNLIN_RUN_ON(test::store_backends(), Stores);

TEST_P(Stores, WhatOneMemberPutsAllGet) {
  start(3);
  for (const Rank by : {0U, 1U, 2U})
    for (std::uint64_t i = 0; i < 20; ++i) {
      const std::uint64_t key = i * 3 + by;
      EXPECT_FALSE(put(by, key, "value " + std::to_string(key)));
      for (const Rank reader : {0U, 1U, 2U})
        EXPECT_EQ(get(reader, key), "value " + std::to_string(key));
    }
  EXPECT_EQ(get(1, "nobody put this"), "-");
  EXPECT_EQ(count(2), 60U);
}

TEST_P(Stores, BehavesAsAStandardMapDoes) {
  for (const std::uint32_t copies : {1U, 2U}) {
    StoreOptions options = test::small_store();
    options.copies = copies;
    start(3, options);
    std::map<std::string, std::string> model;
    std::mt19937_64 random(7);
    const std::vector<std::size_t> lengths{0, 1, 15, 16, 60, 200, 900, 1500, 9000};
    for (std::uint64_t i = 0; i < 1'500 / copies; ++i) {
      const Rank by = static_cast<Rank>(random() % 3);
      const std::string key(random() % 40, static_cast<char>('a' + random() % 8));
      const std::string value(lengths[random() % lengths.size()],
                              static_cast<char>('A' + random() % 26));
      const bool there = model.contains(key);
      switch (random() % 7) {
        case 0:
          EXPECT_EQ(put(by, key, value), there);
          model[key] = value;
          break;
        case 1: {
          auto op = at(by).insert(key, bytes(value));
          EXPECT_EQ(ended(op).changed(), !there);
          if (there) {
            EXPECT_EQ(op.text(), model[key]);
          }
          model.emplace(key, value);
          break;
        }
        case 2: {
          EXPECT_EQ(ended(at(by).replace(key, bytes(value))).changed(), there);
          if (there) model[key] = value;
          break;
        }
        case 3:
          EXPECT_EQ(erase(by, key), there);
          model.erase(key);
          break;
        case 4: {
          auto op = at(by).update(key, [](const std::optional<std::span<const std::byte>>& now) {
            return now ? StoreUpdate::erase() : StoreUpdate::keep();
          });
          EXPECT_EQ(ended(op).changed(), there);
          model.erase(key);
          break;
        }
        default:
          EXPECT_EQ(get(by, key), there ? model[key] : "-") << key;
      }
    }
    for (const auto& [key, value] : model) EXPECT_EQ(get(1, key), value);
    EXPECT_EQ(count(0), model.size());
    std::map<std::string, std::size_t> local;  // bytes, by key
    for (const Rank rank : {0U, 1U, 2U})
      at(rank).for_each_local([&](const StoreEntry& entry) {
        const std::string key(reinterpret_cast<const char*>(entry.key.data()), entry.key.size());
        EXPECT_TRUE(local.emplace(key, entry.value.size()).second) << key << " is seen twice";
      });
    EXPECT_EQ(local.size(), model.size());
    for (const auto& [key, value] : model) EXPECT_EQ(local[key], value.size()) << key;
  }
}

TEST_P(Stores, ValuesHaveAnyLengthUpToAMegabyte) {
  StoreOptions options = test::small_store();
  options.memory_bytes = 20 << 20;
  options.large_bytes = 8 << 20;
  options.memory_bytes = 32 << 20;
  start(2, options);
  for (const std::size_t length : std::initializer_list<std::size_t>{
           kMaxStoreValueBytes, 0, 40'000, 300'000, 7, kMaxStoreValueBytes, 32'000, 70'000}) {
    std::string value(length, 'x');
    for (std::size_t i = 0; i < length; i += 1000)
      value[i] = static_cast<char>('a' + i / 1000 % 26);
    put(0, "key", value);
    EXPECT_EQ(get(1, "key"), value) << length;
    EXPECT_EQ(get(0, "key"), value) << length;
  }
  auto op = at(0).put("key", std::string(kMaxStoreValueBytes + 1, 'x'));
  EXPECT_EQ(cluster->end_of(op), Status::too_long);
  EXPECT_EQ(remote::describe(op.status(), "store"), "it has more bytes than the store takes");
  EXPECT_EQ(cluster->end_of(at(0).get(std::string(kMaxStoreKeyBytes + 1, 'x'))), Status::too_long);
  EXPECT_FALSE(put(0, std::string(kMaxStoreKeyBytes, 'x'), "longest key"));
  EXPECT_EQ(get(1, std::string(kMaxStoreKeyBytes, 'x')), "longest key");
}

TEST_P(Stores, AWordIsTheSameKeyAsItsEightBytes) {
  start(2);
  put(0, std::uint64_t{0x6162636465666768}, "word");
  EXPECT_EQ(get(1, "hgfedcba"), "word");
}

TEST_P(Stores, CompareAndSetChangesOnlyTheVersionThatItKnows) {
  start(2);
  auto first = at(0).compare_and_set("key", 0, bytes("one"));
  EXPECT_TRUE(ended(first).changed());
  auto absent = at(1).compare_and_set("key", 0, bytes("two"));
  EXPECT_FALSE(ended(absent).changed());
  EXPECT_EQ(absent.text(), "one");
  EXPECT_EQ(absent.version(), first.version());
  auto second = at(1).compare_and_set("key", first.version(), bytes("two"));
  EXPECT_TRUE(ended(second).changed());
  EXPECT_GT(second.version(), first.version());
  EXPECT_EQ(get(0, "key"), "two");
  erase(0, "key");
  auto again = at(0).compare_and_set("key", 0, bytes("three"));
  EXPECT_TRUE(ended(again).changed());
  EXPECT_GT(again.version(), second.version());
}

TEST_P(Stores, UpdatesOfAllMembersAddUp) {
  start(3);
  constexpr int kRounds = 40;
  const auto increment = [](std::optional<std::span<const std::byte>> current) {
    thread_local std::string text;
    std::uint64_t number = 0;
    if (current)
      number =
          std::stoull(std::string(reinterpret_cast<const char*>(current->data()), current->size()));
    text = std::to_string(number + 1);
    return StoreUpdate::put(text);
  };
  for (int i = 0; i < kRounds; ++i) {
    auto a = at(0).update("n", increment), b = at(1).update("n", increment),
         c = at(2).update("n", increment);
    ended(a), ended(b), ended(c);
  }
  EXPECT_EQ(get(1, "n"), std::to_string(3 * kRounds));
  auto erased = at(1).update(
      "n", [](const std::optional<std::span<const std::byte>>&) { return StoreUpdate::erase(); });
  EXPECT_TRUE(ended(erased).changed());
  EXPECT_EQ(get(0, "n"), "-");
  auto kept = at(1).update("n", [](const std::optional<std::span<const std::byte>>& current) {
    EXPECT_FALSE(current);
    return StoreUpdate::keep();
  });
  EXPECT_FALSE(ended(kept).changed());
}

TEST_P(Stores, AFullStoreSaysSoAndGoesOn) {
  StoreOptions options = test::small_store();
  options.memory_bytes = kMinStoreBytes;
  start(2, options);
  const std::string value(2'000, 'v');
  std::uint64_t keys = 0;
  Status status = Status::ok;
  for (; keys < 5'000 && status == Status::ok; ++keys) {
    status = cluster->end_of(at(0).put(keys, value));
    if (status != Status::ok) break;
  }
  EXPECT_EQ(status, Status::no_room);
  EXPECT_EQ(get(1, keys), "-");
  for (std::uint64_t key = 0; key < keys; ++key) EXPECT_EQ(get(1, key), value);
  EXPECT_EQ(count(1), keys);
  for (std::uint64_t key = 0; key < keys; ++key) EXPECT_TRUE(erase(0, key));
  EXPECT_EQ(count(1), 0U);
  for (std::uint64_t key = 0; key < keys / 2; ++key) EXPECT_FALSE(put(0, key, value));
  for (std::uint64_t key = 0; key < keys / 2; ++key) EXPECT_EQ(get(1, key), value);
}

TEST_P(Stores, ABatchIsManyCallsAtOnce) {
  start(2);
  StoreBatch batch(at(0));
  for (std::uint64_t key = 0; key < 100; ++key) batch.put(key, bytes("value"), kNoExpiry);
  EXPECT_TRUE(cluster->until([&] { return batch.finished(); }));
  EXPECT_EQ(batch.wait(), Status::ok);
  batch.clear();
  for (std::uint64_t key = 0; key < 101; ++key) batch.get(key);
  EXPECT_TRUE(cluster->until([&] { return batch.finished(); }));
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(batch[i].text(), "value") << i;
  EXPECT_FALSE(batch[100].found());
}

TEST_P(Stores, ABatchUpdatesManyKeysAtOnce) {
  start(2);
  for (std::uint64_t key = 0; key < 20; ++key) ASSERT_FALSE(put(0, key, "former"));
  StoreBatch batch(at(1));
  const auto change = [](std::optional<std::span<const std::byte>> current) {
    return current ? StoreUpdate::put("changed") : StoreUpdate::keep();
  };
  for (std::uint64_t key = 0; key < 21; ++key) batch.update(key, change);
  ASSERT_TRUE(cluster->until([&] { return batch.finished(); }));
  EXPECT_EQ(batch.wait(), Status::ok);
  for (std::uint64_t key = 0; key < 20; ++key) {
    EXPECT_EQ(batch[key].text(), "former") << key;
    EXPECT_EQ(get(0, key), "changed") << key;
  }
  EXPECT_FALSE(batch[20].changed());
  EXPECT_EQ(get(0, 20), "-");
}

TEST_P(Stores, ABatchOfGetsEndsAsSingleGetsDo) {
  for (const std::size_t cache_bytes : {std::size_t{0}, std::size_t{4096}}) {
    StoreOptions options = test::small_store();
    options.cache_bytes = cache_bytes;
    start(2, options);
    for (std::uint64_t key = 0; key < 300; ++key)  // chains overflow
      ASSERT_FALSE(put(0, key, std::string(key * 5, 'v')));
    StoreBatch batch(at(1));                   // that knows no index yet
    for (int round = 0; round < 2; ++round) {  // then all locations that the cache holds
      batch.clear();
      for (std::uint64_t key = 0; key < 310; ++key) batch.get(key);
      batch.get(std::string(kMaxStoreKeyBytes + 1, 'k'));
      ASSERT_TRUE(cluster->until([&] { return batch.finished(); }));
      for (std::size_t key = 0; key < 300; ++key)
        EXPECT_EQ(batch[key].text(), std::string(key * 5, 'v')) << key;
      for (std::size_t key = 300; key < 310; ++key) EXPECT_FALSE(batch[key].found()) << key;
      EXPECT_EQ(batch[310].status(), Status::too_long);
    }
    batch.clear();
    for (std::uint64_t key = 0; key < 20; ++key) batch.get(key);
    batch.clear();  // given up, most of them before their first step
    EXPECT_EQ(at(1).progress().in_flight(), 0U);
  }
}

TEST_P(Stores, AScanSeesEachKeyOnce) {
  start(3);
  for (std::uint64_t key = 0; key < 500; ++key)
    put(static_cast<Rank>(key % 3), key, "v" + std::to_string(key));
  std::map<std::uint64_t, int> seen;
  StoreScan scan(at(1), {.buckets = 5});
  StoreCursor cursor = 0;
  std::uint64_t steps = 0;
  do {
    scan.step(cursor);
    ASSERT_EQ(remote::describe(cluster->end_of(scan)), "done");
    for (std::size_t i = 0; i < scan.size(); ++i) {
      std::uint64_t key = 0;
      ASSERT_EQ(scan[i].key.size(), sizeof key);
      std::copy(scan[i].key.begin(), scan[i].key.end(), reinterpret_cast<std::byte*>(&key));
      ++seen[key];
      const std::string value = "v" + std::to_string(key);
      EXPECT_TRUE(std::ranges::equal(scan[i].value, bytes(value)));
    }
    cursor = scan.cursor();
    put(0, 1000 + steps, "comes and goes");
    erase(2, 1000 + steps);
    put(2, steps % 500, "v" + std::to_string(steps % 500));
  } while (cursor != 0 && ++steps < 10'000);
  for (std::uint64_t key = 0; key < 500; ++key) EXPECT_EQ(seen[key], 1) << key;
  scan.step(StoreCursor{7} << 48);
  EXPECT_EQ(cluster->end_of(scan), Status::out_of_range);
}

/// STO-6 promises what this test checks.
TEST_P(Stores, ACachedLocationSavesTheBucketAndIsNeverTrusted) {
  start(2);
  put(0, "key", "one");
  const auto reads = [&](std::string_view expected) {
    auto op = at(1).get("key");
    EXPECT_EQ(ended(op).text(), expected);
    return std::pair{op.bucket_reads(), op.entry_reads()};
  };
  EXPECT_EQ(reads("one"), std::pair(1U, 1U));
  EXPECT_EQ(reads("one"), std::pair(0U, 1U));
  put(0, "key", "two");  // in place
  EXPECT_EQ(reads("two"), std::pair(0U, 1U));
  const std::string longer(500, 'l');
  put(0, "key", longer);
  EXPECT_EQ(reads(longer), std::pair(1U, 2U));
  EXPECT_EQ(reads(longer), std::pair(0U, 1U));
  erase(0, "key");
  for (std::uint64_t other = 0; other < 50; ++other) put(0, other, longer);  // reuses the block
  EXPECT_EQ(get(1, "key"), "-");
  EXPECT_EQ(at(1).counters().at("cache_stale"), 2U);
}

TEST_P(Stores, ASharedCacheHasWhatAnyOfItsStoresHasFound) {
  StoreOptions options = test::small_store();
  options.shared_cache = make_location_cache(4096);
  start(3, options);
  put(0, "key", "one");
  for (const Rank rank : {1U, 2U}) {
    auto op = at(rank).get("key");
    EXPECT_EQ(ended(op).text(), "one");
    EXPECT_EQ(op.bucket_reads(), 0U) << "member 0 has put its location there";
  }
  erase(1, "key");
  EXPECT_EQ(get(2, "key"), "-");
  EXPECT_EQ(at(2).counters().at("cache_stale"), 0U) << "member 1 has taken it out";
}

TEST(Store, RefusesWhatItCannotHold) {
  sim::World world(sim::profile("ib100"), 1, 1);
  const auto with = [&](const StoreOptions& options) {
    return what_is_thrown_by([&] { const Store store(world.fabric(0), options); });
  };
  EXPECT_TRUE(contains(with({.name = "a b"}), "name"));
  EXPECT_TRUE(contains(with({.memory_bytes = 1000}), "kMinStoreBytes"));
  EXPECT_TRUE(contains(with({.memory_bytes = 2 << 20, .expected_keys = 1'000'000}), "index"));
}

TEST(Store, MembersOfOtherStoresRefuseEachOther) {
  sim::World world(sim::profile("ib100"), 2, 1);
  StoreOptions options = test::small_store();
  Store one(world.fabric(0), options);
  options.homes = 1;
  Store other(world.fabric(1), options);
  world.attach(0, [&] { return one.poll(); });
  world.attach(1, [&] { return other.poll(); });
  auto op = other.put("key", "value");
  EXPECT_TRUE(world.run_until([&] { return op.finished(); }, 1'000'000'000));
  EXPECT_EQ(op.status(), Status::refused);
}

}  // namespace
}  // namespace dunlin

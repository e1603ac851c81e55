#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "container/clusters.hpp"
#include "container/texts.hpp"
#include "support/errors.hpp"

/// Maps whose long values lie in a pool.
namespace dunlin {
namespace {

using remote::Status;
using test::contains;
using test::is_text;
using test::text_of;
using test::what_is_thrown_by;

using Texts = HashMap<std::uint64_t, std::string>;
constexpr std::uint32_t kInline = 38;  // beside 8 bytes of key and 2 of length: one line
constexpr std::uint32_t kLongest = 5000;

struct PooledValues : test::OnContainers {
  std::vector<std::unique_ptr<Texts>> maps;

  void start_maps(std::uint32_t members, std::size_t pool_bytes = 1 << 20,
                  std::uint32_t slots = 100) {
    start(members);
    maps = make<Texts>(MapOptions{
        .name = "texts", .slots = slots, .value_bytes = kLongest, .pool_bytes = pool_bytes});
  }
  Status assign(Rank by, std::uint64_t key, const std::string& value) {
    return cluster->end_of(maps[by]->assign(key, value));
  }
  Status insert(Rank by, std::uint64_t key, const std::string& value) {
    return cluster->end_of(maps[by]->insert(key, value));
  }
  std::string find(Rank by, std::uint64_t key) {
    auto op = maps[by]->find(key);
    EXPECT_EQ(remote::describe(cluster->end_of(op)), "done");
    return op.result().found() ? op.result().value() : "(none)";
  }
  Status erase(Rank by, std::uint64_t key) { return cluster->end_of(maps[by]->erase(key)); }
  [[nodiscard]] std::size_t blocks() const {
    std::size_t all = 0;
    for (const auto& map : maps) all += map->pool_use().blocks;
    return all;
  }
  /// Frees are under way when a call has ended.
  void expect_blocks(std::size_t count) {
    EXPECT_TRUE(cluster->until([&] { return blocks() == count; }))
        << "CON-V5: " << blocks() << " blocks instead of " << count;
  }
};

DUNLIN_RUN_ON(test::container_cases(), PooledValues);

TEST_P(PooledValues, OfEachLengthAreReadBack) {
  start_maps(2);
  const std::array<std::size_t, 12> lengths{0,  1,  kInline - 1, kInline, kInline + 1, 48,
                                            49, 96, 97,          1000,    4999,        kLongest};
  std::uint64_t key = 0;
  for (const std::size_t bytes : lengths)
    for (const Rank by : {0U, 1U}) {
      ++key;
      EXPECT_EQ(insert(by, key, text_of(key, bytes)), Status::ok) << bytes;
      EXPECT_EQ(find(1 - by, key), text_of(key, bytes)) << bytes;
      EXPECT_EQ(find(by, key), text_of(key, bytes)) << bytes;
      auto again = maps[1 - by]->insert(key, text_of(key + 1, kLongest));
      EXPECT_EQ(cluster->end_of(again), Status::ok);
      EXPECT_FALSE(again.result().inserted());
      EXPECT_EQ(again.result().value(), text_of(key, bytes)) << bytes;
    }
  EXPECT_EQ(insert(0, 1000, text_of(1, kLongest + 1)), Status::too_long);
  EXPECT_EQ(find(0, 1000), "(none)");
  expect_blocks(16);  // 8 of the lengths
}

TEST_P(PooledValues, BehaveAsThoseOfAStandardMapDo) {
  start_maps(3);
  const auto length = [](std::uint64_t drawn) -> std::size_t {
    if (drawn % 4 == 0) return drawn / 4 % kInline;
    return drawn % 4 == 1 ? kInline + drawn / 4 % 3 : drawn / 4 % (kLongest + 1);
  };
  const auto model = expect_a_standard_map<std::uint64_t, std::string>(
      maps, 400, [](std::uint64_t drawn) { return drawn % 40; },
      [&](std::uint64_t drawn) { return text_of(drawn >> 32, length(drawn & UINT32_MAX)); });
  std::size_t long_values = 0;
  for (const auto& [key, value] : model) long_values += value.size() > kInline ? 1 : 0;
  expect_blocks(long_values);
  for (const auto& [key, value] : model)
    EXPECT_EQ(erase(static_cast<Rank>(key % 3), key), Status::ok);
  expect_blocks(0);
}

/// A slot that refers to a block too early (CON-V4) would show another text.
TEST_P(PooledValues, AreNeverMixedWhileAllChangeThem) {
  start_maps(3, 1 << 18);
  constexpr std::uint64_t kChangedKeys = 3;
  std::mt19937_64 random(17);
  struct Caller {
    Texts::Operation op;
    bool finds = false;
  };
  std::vector<Caller> callers(9);  // three at each member
  std::uint64_t calls = 0, seen = 0;
  EXPECT_TRUE(cluster->until([&] {
    for (std::size_t i = 0; i < callers.size(); ++i) {
      Caller& caller = callers[i];
      if (!caller.op.finished()) continue;
      EXPECT_EQ(caller.op.status(), Status::ok);
      if (caller.finds && caller.op.result().found()) {
        ++seen;
        EXPECT_TRUE(is_text(caller.op.result().value())) << "CON-V3: mixed";
      }
      if (calls >= 1500) continue;
      ++calls;
      Texts& map = *maps[i / 3];
      const std::uint64_t key = random() % kChangedKeys;
      caller.finds = random() % 2 == 0;
      if (caller.finds) {
        caller.op = map.find(key);
      } else if (random() % 4 == 0) {
        caller.op = map.erase(key);
      } else {  // of two sizes, so that blocks are used again soon
        const std::uint64_t number = random();
        caller.op = map.assign(key, text_of(number, number % 2 == 0 ? 100 : 30));
      }
    }
    return calls >= 1500 && std::all_of(callers.begin(), callers.end(),
                                        [](const Caller& one) { return one.op.finished(); });
  }));
  EXPECT_GT(seen, 100U);
  for (std::uint64_t key = 0; key < kChangedKeys; ++key) EXPECT_EQ(erase(0, key), Status::ok);
  expect_blocks(0);
}

/// CON-V6 promises what this test checks.
TEST_P(PooledValues, WithoutRoomAreRefusedAndChangeNothing) {
  start_maps(2, 1 << 16);
  std::vector<std::uint64_t> kept;
  std::uint64_t key = 0;
  Status status = Status::ok;
  for (; status == Status::ok && key < 100; ++key) {
    status = insert(0, key, text_of(key, 4000));
    if (status == Status::ok) kept.push_back(key);
  }
  const std::uint64_t refused = key - 1;
  EXPECT_EQ(status, Status::no_room);
  EXPECT_GT(kept.size(), 2U);
  EXPECT_EQ(find(1, refused), "(none)");
  expect_blocks(kept.size());
  EXPECT_EQ(insert(0, refused, "short"), Status::ok);  // which needs no block
  EXPECT_EQ(assign(0, refused, text_of(1, 4000)), Status::no_room);
  EXPECT_EQ(find(1, refused), "short");
  for (const std::uint64_t one : kept) EXPECT_EQ(find(1, one), text_of(one, 4000));
  const Rank home = maps[0]->home_of(refused);
  const auto same = std::find_if(kept.begin(), kept.end(),
                                 [&](std::uint64_t one) { return maps[0]->home_of(one) == home; });
  ASSERT_NE(same, kept.end());
  EXPECT_EQ(erase(1, *same), Status::ok);
  expect_blocks(kept.size() - 1);
  EXPECT_EQ(assign(0, refused, text_of(1, 4000)), Status::ok);
  EXPECT_EQ(find(1, refused), text_of(1, 4000));
  expect_blocks(kept.size());
}

TEST_P(PooledValues, OfAbandonedCallsAreThereOrFreed) {
  start_maps(2);
  EXPECT_EQ(assign(0, 1, text_of(1, 500)), Status::ok);
  std::mt19937_64 random(23);
  for (int round = 0; round < 120; ++round) {
    const Rank by = round % 2 == 0 ? 0 : 1;
    Texts::Operation op;
    const std::uint64_t key = random() % 6;
    const std::uint64_t number = random();
    const std::string value = text_of(number, number % 2 == 0 ? 500 : 10);
    switch (random() % 3) {
      case 0:
        op = maps[by]->insert(key, value);
        break;
      case 1:
        op = maps[by]->assign(key, value);
        break;
      default:
        op = maps[by]->erase(key);
    }
    cluster->pass(random() % 6);
    op.abandon();
    op.abandon();
  }
  // A call that was given up may change its key once more.
  for (int attempts = 0; attempts < 100 && (attempts == 0 || blocks() > 0); ++attempts)
    for (std::uint64_t key = 0; key < 6; ++key) {
      const std::string value = find(0, key);
      EXPECT_TRUE(value == "(none)" || is_text(value));
      EXPECT_EQ(erase(1, key), Status::ok);
    }
  expect_blocks(0);
}

TEST_P(PooledValues, MapsThatGrowHaveThemToo) {
  start(2);
  maps = make<Texts>(MapOptions{.name = "texts",
                                .slots = 8,
                                .value_bytes = kLongest,
                                .grow_to = 400,
                                .pool_bytes = 1 << 19,
                                .inline_bytes = 100});
  for (std::uint64_t key = 0; key < 100; ++key)
    EXPECT_EQ(insert(static_cast<Rank>(key % 2), key, text_of(key, key * 7)), Status::ok);
  EXPECT_GT(maps[0]->local_use().tables, 1U);
  for (std::uint64_t key = 0; key < 100; ++key) {
    EXPECT_EQ(find(static_cast<Rank>(1 - key % 2), key), text_of(key, key * 7));
    EXPECT_EQ(assign(static_cast<Rank>(1 - key % 2), key, text_of(key + 1, 700 - key * 7)),
              Status::ok);
  }
  for (std::uint64_t key = 0; key < 100; ++key) {
    EXPECT_EQ(find(0, key), text_of(key + 1, 700 - key * 7));
    EXPECT_EQ(erase(0, key), Status::ok);
  }
  expect_blocks(0);
}

TEST_P(PooledValues, AreFoundByAScanWhileTheyChange) {
  start_maps(2);
  for (std::uint64_t key = 0; key < 40; ++key)
    EXPECT_EQ(insert(0, key, text_of(key, 20 + key % 3 * 300)), Status::ok);
  Texts::Operation writer;
  auto scan = maps[1]->scan();
  std::map<std::uint64_t, int> seen;
  std::uint64_t writes = 0;
  scan.next();
  EXPECT_TRUE(cluster->until([&] {
    if (writer.finished() && writes < 300)
      writer = maps[0]->assign(writes % 40, text_of(writes, 20 + writes % 5 * 150)), ++writes;
    if (!scan.piece().finished()) return false;
    EXPECT_EQ(scan.piece().status(), Status::ok);
    scan.for_each_found([&](std::uint64_t key, const std::string& value) {
      EXPECT_TRUE(is_text(value)) << "CON-V3: mixed";
      ++seen[key];
    });
    if (scan.at_end()) return true;
    scan.next();
    return false;
  }));
  EXPECT_EQ(seen.size(), 40U);
  for (const auto& [key, times] : seen) EXPECT_EQ(times, 1) << "CON-I1";
  EXPECT_EQ(cluster->end_of(writer), Status::ok);
}

TEST_P(PooledValues, MayBeAsLongAsAMegabyte) {
  start(2);
  const auto both = make<HashMap<std::string, std::vector<std::uint32_t>>>(
      MapOptions{.name = "long",
                 .slots = 20,
                 .key_bytes = 30,
                 .value_bytes = kMaxPooledValueBytes,
                 .pool_bytes = std::size_t{8} << 20});
  std::vector<std::uint32_t> value(kMaxPooledValueBytes / 4);
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<std::uint32_t>(i * 7);
  auto assign = both[0]->assign("a", value);
  EXPECT_EQ(cluster->end_of(assign), Status::ok);
  EXPECT_EQ(cluster->end_of(both[1]->assign("a", value)), Status::ok);
  for (const Rank by : {0U, 1U}) {
    auto find = both[by]->find("a");
    EXPECT_EQ(cluster->end_of(find), Status::ok);
    EXPECT_TRUE(find.result().value() == value);
  }
}

TEST_P(PooledValues, MayBeInsertedManyAtOnce) {
  start(1);  // which waits by itself
  Texts map((*cluster)[0], {.name = "texts",
                            .slots = 100,
                            .style = GetParam().style,
                            .value_bytes = kLongest,
                            .checked = true,
                            .pool_bytes = 1 << 20});
  std::vector<std::pair<std::uint64_t, std::string>> elements;
  for (std::uint64_t i = 0; i < 60; ++i) elements.emplace_back(i, text_of(i, i * 13));
  EXPECT_EQ(map.insert_many(elements, Promise::writes), Status::ok);
  std::uint64_t count = 0;
  EXPECT_EQ(map.for_each([&](std::uint64_t key, const std::string& value) {
    ++count;
    EXPECT_EQ(value, text_of(key, key * 13));
  }),
            Status::ok);
  EXPECT_EQ(count, 60U);
}

TEST(PooledValueCosts, AreABlocksReadForAFindAndNothingForAnInsert) {
  test::SimContainers cluster(sim::profile("ib100"), 2);
  const MapOptions options{.name = "texts",
                           .slots = 50,
                           .style = Style::one_sided,
                           .value_bytes = 4000,
                           .pool_bytes = 1 << 20};
  Texts near(cluster[0], options), far(cluster[1], options);
  std::uint64_t key = 0;
  while (near.home_of(key) != 1) ++key;
  auto first = near.insert(key, text_of(1, 4000));  // fetches a slab
  ASSERT_EQ(cluster.end_of(first), Status::ok);
  EXPECT_EQ(first.result().round_trips(), 2U) << "C + (W, w), and the block before the C";
  auto find = near.find(key);
  ASSERT_EQ(cluster.end_of(find), Status::ok);
  EXPECT_EQ(find.result().round_trips(), 2U) << "R + R";
  auto assign = near.assign(key, text_of(2, 4000));
  ASSERT_EQ(cluster.end_of(assign), Status::ok);
  EXPECT_EQ(assign.result().round_trips(), 3U) << "R + C + (W, w)";
  ASSERT_EQ(cluster.end_of(near.assign(key, "short")), Status::ok);
  auto again = near.find(key);
  ASSERT_EQ(cluster.end_of(again), Status::ok);
  EXPECT_EQ(again.result().round_trips(), 1U);
}

TEST(PooledValueErrors, NameTheOption) {
  sim::World world(sim::profile("ideal"), 1, 1);
  Containers containers(world.fabric(0));
  const auto thrown_by = [&](const MapOptions& options) {
    return what_is_thrown_by([&] { Texts(containers, options); });
  };
  EXPECT_TRUE(contains(thrown_by({.name = "m",
                                  .slots = 1,
                                  .value_bytes = kMaxPooledValueBytes + 1,
                                  .pool_bytes = 1 << 20}),
                       "kMaxPooledValueBytes"));
  EXPECT_TRUE(contains(thrown_by({.name = "m", .slots = 1, .value_bytes = 900, .pool_bytes = 1000}),
                       "pool_bytes must be at least"));
  EXPECT_TRUE(
      contains(thrown_by({.name = "m", .slots = 1, .value_bytes = 900, .inline_bytes = 100}),
               "inline_bytes is for maps with a pool"));
  EXPECT_TRUE(contains(thrown_by({.name = "m",
                                  .slots = 1,
                                  .value_bytes = 9000,
                                  .pool_bytes = 1 << 20,
                                  .inline_bytes = 5000}),
                       "kMaxElementBytes"));
  EXPECT_TRUE(contains(what_is_thrown_by([&] {
                         HashMap<int, int>(containers,
                                           {.name = "n", .slots = 1, .pool_bytes = 1 << 20});
                       }),
                       "for values of variable size"));
}

TEST(PooledValueReferences, AreMadeOfTheBytesThatTheFormatSays) {
  std::array<std::byte, kLengthBytes + kReferenceBytes> cell{};
  EXPECT_FALSE(container::reference_in(cell.data()).has_value());
  container::put_reference({.offset = 0x0102, .stamp = 0x0304, .bytes = 0x0506}, cell.data());
  EXPECT_EQ(cell[0], std::byte{0xff});
  EXPECT_EQ(cell[1], std::byte{0xff});
  EXPECT_EQ(cell[2], std::byte{0x02});
  EXPECT_EQ(cell[10], std::byte{0x04});
  EXPECT_EQ(cell[18], std::byte{0x06});
  const auto back = container::reference_in(cell.data());
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->offset, 0x0102U);
  EXPECT_EQ(back->stamp, 0x0304U);
  EXPECT_EQ(back->bytes, 0x0506U);
}

}  // namespace
}  // namespace dunlin

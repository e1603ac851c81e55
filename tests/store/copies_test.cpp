#include <array>
#include <cstdint>
#include <deque>
#include <string>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/sim_members.hpp"
#include "store/stores.hpp"

/// Stores with two copies of each key, whose homes die.
namespace dunlin {
namespace {

using remote::Status;
using test::Mortals;
using test::name_of;
using test::two_copies;

TEST(StoreCopies, NoKeyIsLostByOneDeathAndThenAnother) {
  constexpr int kMany = 60;
  Mortals mortals(5, 5, Mortals::network(), two_copies());
  for (int key = 0; key < kMany; ++key)
    mortals.change(static_cast<Rank>(key % 5), key, name_of(key));
  mortals.erase(1, name_of(7));
  const auto& expected = mortals.expected;
  EXPECT_EQ(mortals.scanned(2), expected);

  for (const Rank dies : {Rank{3}, Rank{4}}) {  // 4 has what was 3's
    mortals.world.crash(dies);
    EXPECT_EQ(mortals.scanned(0), expected);
    for (int key = 0; key < kMany; ++key) {
      const auto found = expected.find(name_of(key));
      EXPECT_EQ(mortals.get(static_cast<Rank>(key % 3), name_of(key)),
                found == expected.end() ? "-" : found->second)
          << "STO-C1: " << name_of(key);
      EXPECT_NE(mortals.at(0).home_of(name_of(key)), dies);
    }
    for (int key = 0; key < kMany; key += 5)
      mortals.change(1, key, "after " + std::to_string(dies));
    if (dies == 3) mortals.expect_restored(dies, {4});
    mortals.expect_restored(dies, {0, 1, 2});
    EXPECT_EQ(mortals.count(0), expected.size());
  }
  std::uint64_t restored = 0, local = 0;
  for (const Rank rank : {0U, 1U, 2U}) {
    restored += mortals.at(rank).counters().at("copies_restored");
    mortals.at(rank).for_each_local([&](const StoreEntry&) { ++local; });
  }
  EXPECT_GT(restored, expected.size() / 5);
  EXPECT_EQ(local, expected.size());
}

TEST(StoreCopies, AChangeThatHasEndedOutlivesTheFirstHomeWheneverThatDies) {
  std::uint64_t before_death = 0, after_death = 0;
  const std::string small(200, 's'), large(3'000, 'l');
  for (std::uint64_t moment = 0; moment < 240'000; moment += 3'000) {
    Mortals mortals(3, 3, Mortals::network(), two_copies());
    const std::string key = mortals.key_at(2);
    mortals.put(0, key, "old");
    const std::uint64_t version = [&] {
      auto op = mortals.at(1).get(key);
      mortals.end_of(op);
      return op.version();
    }();
    const std::string& value = moment % 2 == 0 ? small : large;
    auto put = mortals.at(0).compare_and_set(key, version, std::as_bytes(std::span(value)));
    mortals.world.run_for(moment);
    const bool had_ended = put.finished();
    mortals.world.crash(2);
    EXPECT_EQ(mortals.end_of(put), Status::ok);
    EXPECT_TRUE(put.changed()) << "STO-C1: happened twice, or not at all: " << moment;
    for (const Rank by : {0U, 1U}) EXPECT_EQ(mortals.get(by, key), value) << "STO-C1: " << moment;
    ++(had_ended ? before_death : after_death);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(before_death, 0U);
  EXPECT_GT(after_death, 0U);
}

TEST(StoreCopies, AChangeEndsAlthoughTheSecondHomeDies) {
  for (std::uint64_t moment = 0; moment < 240'000; moment += 3'000) {
    Mortals mortals(4, 4, Mortals::network(), two_copies());
    const std::string key = mortals.key_at(1);
    auto put = mortals.at(0).put(key, std::string(500, 'n'));
    mortals.world.run_for(moment);
    mortals.world.crash(2);
    EXPECT_EQ(mortals.end_of(put), Status::ok);
    mortals.expect_restored(2, {0, 1, 3});
    mortals.world.crash(1);  // the new second home is 3
    EXPECT_EQ(mortals.get(0, key), std::string(500, 'n')) << "STO-C4: " << moment;
    if (testing::Test::HasFailure()) return;
  }
}

TEST(StoreCopies, KeysOfWhichBothHomesDieAreLostAndTheOthersStay) {
  constexpr int kMany = 50;
  Mortals mortals(5, 5, Mortals::network(), two_copies());
  std::array<Rank, kMany> homes{};
  for (int key = 0; key < kMany; ++key) {
    mortals.put(0, name_of(key), "value");
    homes.at(static_cast<std::size_t>(key)) = mortals.at(0).home_of(name_of(key));
  }
  mortals.world.crash(2);
  mortals.world.crash(3);
  int lost = 0;
  for (int key = 0; key < kMany; ++key) {
    auto get = mortals.at(1).get(name_of(key));
    const Status status = mortals.end_of(get);
    const Rank home = homes.at(static_cast<std::size_t>(key));
    const bool may_be_lost = home == 2 || home == 3;
    EXPECT_TRUE(status == Status::ok || (may_be_lost && status == Status::lost)) << name_of(key);
    if (status == Status::lost) ++lost;
    if (status == Status::ok) {
      EXPECT_EQ(get.text(), "value");
    }
  }
  EXPECT_GT(lost, 0);
  EXPECT_LT(lost, kMany / 4) << "one in ten has both copies at two of five";
  auto insert = mortals.at(0).insert(name_of(0), std::as_bytes(std::span("x", 1)));
  mortals.end_of(insert);
  EXPECT_TRUE(insert.finished());
}

/// The home hangs, but its memory can still be read, and member 1 hears of its end late.
TEST(StoreCopies, NoGetReturnsWhatTheHomeThatIsGoneStillHas) {
  std::uint64_t knew_later = 0;
  for (std::uint32_t slow = 20; slow <= 120; slow += 20) {
    Mortals mortals(5, 5, sim::profile("ib100"), two_copies());
    const std::string key = mortals.key_at(2);
    mortals.put(0, key, "old");
    EXPECT_EQ(mortals.get(1, key), "old");
    mortals.world.hang(2);
    mortals.world.slow(1, slow);
    mortals.until_gone(2);
    if (mortals.member(1).progress.contains(2)) ++knew_later;
    EXPECT_EQ(mortals.end_of(mortals.at(0).put(key, "new")), Status::ok);
    EXPECT_FALSE(mortals.member(1).progress.contains(2)) << "STO-C2: it may ask the former home";
    EXPECT_EQ(mortals.get(1, key), "new") << "STO-C2: slow " << slow;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(knew_later, 0U);
}

/// The second home dies when it has the new key, and the first one has not got all of it yet.
TEST(StoreCopies, AKeyThatIsInsertedAmidADeathGetsItsSecondCopy) {
  const std::string value(30'000, 'v');  // 0.3 ms on this network
  for (std::uint64_t at_ns = 0; at_ns < 2'000'000; at_ns += 50'000) {
    SCOPED_TRACE("home 0 dies " + std::to_string(at_ns) + " ns after the put began");
    Mortals mortals(4, 3, Mortals::network(), two_copies());
    const std::string key = mortals.key_at(2);
    auto put = mortals.at(3).put(key, value);
    mortals.world.run_for(at_ns);
    mortals.world.crash(0);
    EXPECT_EQ(mortals.end_of(put), Status::ok);
    mortals.expect_restored(0, {1, 2});
    mortals.world.crash(2);
    EXPECT_EQ(mortals.get(1, key), value) << "STO-C4: one copy was not made";
    if (HasFailure()) return;
  }
}

TEST(StoreCopies, ATimeToLiveEndsAtTheHomeThatTakesOver) {
  Mortals mortals(3, 3, Mortals::network(), two_copies());
  const std::string key = mortals.key_at(2);
  EXPECT_EQ(mortals.end_of(mortals.at(0).put(key, "value", 200'000'000)), Status::ok);
  mortals.world.crash(2);
  EXPECT_EQ(mortals.get(1, key), "value");
  mortals.world.run_for(220'000'000);
  EXPECT_EQ(mortals.get(1, key), "-");
}

TEST(StoreCopies, RefusesWhatItDoesNotOffer) {
  sim::World world(sim::profile("ib100"), 1, 1);
  StoreOptions options = two_copies();
  options.copies = 3;
  EXPECT_THROW(Store(world.fabric(0), options), Error);
  options.copies = 2;
  options.eviction = Eviction::lru;
  EXPECT_THROW(Store(world.fabric(0), options), Error);
}

// --- on each fabric ------------------------------------------------------------------------------

struct CopiesOnStores : test::OnStores {};
DUNLIN_RUN_ON(test::store_backends(), CopiesOnStores);

/// Members change keys of each other's at once: none waits for the others in a circle.
TEST_P(CopiesOnStores, ChangesOfFewChainsAllEnd) {
  StoreOptions options = test::small_store();
  options.copies = 2;
  options.expected_keys = 1;
  start(3, options);
  for (int round = 0; round < 20; ++round) {
    std::deque<StoreOperation> all;
    for (Rank rank = 0; rank < 3; ++rank)
      for (std::uint64_t key = 0; key < 6; ++key)
        at(rank).put(all.emplace_back(), key, bytes("value"));
    for (StoreOperation& one : all) EXPECT_TRUE(ended(one).changed());
  }
  EXPECT_EQ(count(1), 6U);
}

}  // namespace
}  // namespace dunlin

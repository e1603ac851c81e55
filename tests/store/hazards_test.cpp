#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/sim_members.hpp"
#include "store/traffic.hpp"
#include "support/rounds.hpp"

/// What is left of a slot where it was, what is cut off, and what is read while it is written.
namespace dunlin {
namespace {

using remote::Status;
using test::CopiedMortals;
using test::Joining;
using test::kLate;
using test::Mortals;
using test::name_of;
using test::roomy_store;
using test::two_copies;

StoreOptions with_cache(StoreOptions options) {
  options.cache_bytes = 4096;
  return options;
}

// --- slots that come back ------------------------------------------------------------------------

/// STO-6: member 2 knows where the keys were in the memory of member 0, and these places are as
/// they were unless the member has marked them when it emptied its slots.
TEST(StoreHazards, ALocationFromBeforeASlotWentAndCameBackIsStale) {
  Mortals members(3, 2, Mortals::network(), with_cache(roomy_store()));
  members.fill(30);
  members.expect_gets(2);
  for (const Rank keeps : {Rank{1}, Rank{0}}) {
    const Rank drains = 1 - keeps;
    members.at(drains).set_weight(0);
    EXPECT_EQ(remote::describe(members.settle(drains)), "done");
    EXPECT_EQ(members.keys_at(drains), 0U);
    for (int key = 0; key < 30; ++key) members.change(keeps, key, "by " + std::to_string(keeps));
    members.at(drains).set_weight(1);
    EXPECT_EQ(remote::describe(members.settle(drains)), "done");
  }
  members.at(1).set_weight(0);
  EXPECT_EQ(remote::describe(members.settle(1)), "done");
  members.expect_gets(2, "STO-6: a location from before is trusted");
}

/// STO-P13: what a member gets while it empties the slot would be dropped, too.
TEST(StoreHazards, AMemberThatDrainsMayGetItsSlotsBackAtAnyMoment) {
  std::uint64_t amid = 0;
  for (std::uint64_t moment = 20'000; moment < 1'500'000; moment += 90'000) {
    SCOPED_TRACE("after " + std::to_string(moment) + " ns");
    Mortals members(4, 3, Mortals::network(), two_copies());
    members.fill(60);
    members.world.on(1, [&] { members.at(1).set_weight(0); });
    members.world.run_for(moment);
    amid += members.at(0).placement().moving > 0 ? 1 : 0;
    members.at(1).set_weight(2);
    EXPECT_EQ(remote::describe(members.settle(1)), "done");
    for (const Rank by : {Rank{0}, Rank{3}}) members.expect_gets(by, "STO-P13: keys are lost");
    members.world.crash(moment % 180'000 == 20'000 ? 0 : 2);
    members.expect_gets(1, "STO-P13: keys of a copy are lost");
    if (HasFailure()) return;
  }
  EXPECT_GT(amid, 0U);
}

// --- room ----------------------------------------------------------------------------------------

/// STO-M1: the member that gets copies has room for a part of them, and the others change the keys.
TEST(StoreHazards, NoChangeIsRefusedBecauseACopyThatIsMadeHasNoRoom) {
  Joining members(two_copies(), 1);
  const auto change = [&](Rank by, int key, const std::string& text) {
    members.put(by, name_of(key),
                members.expected[name_of(key)] = std::string(8'000, 'v') + text + name_of(key));
  };
  for (int key = 0; key < 60; ++key) change(0, key, "first ");
  members.options.limit_bytes = 2 << 16;
  members.join(kLate);
  for (int round = 0; round < 3; ++round)
    for (int key = 0; key < 60; ++key)
      change(static_cast<Rank>(key % 3), key, "in round " + std::to_string(round) + " ");
  EXPECT_FALSE(members.at(1).placement().members.back().takes);
  for (const Rank by : {Rank{1}, kLate}) members.expect_gets(by, "STO-M1");
}

// --- transactions --------------------------------------------------------------------------------

/// STO-P9: a member that gets a copy gets what transactions change meanwhile.
TEST(StoreHazards, ACopyHasWhatTransactionsChangeWhileItIsMade) {
  constexpr int kMany = 8;
  StoreOptions options = two_copies();
  options.move_bytes_per_second = 10'000'000;
  Joining members(options);
  for (int key = kMany; key < 120; ++key) members.change(0, key, "filler");
  for (int key = 0; key < kMany; ++key) members.put(0, name_of(key), "100");
  members.join(kLate);
  auto settle = members.at(kLate).settle();
  int round = 0;
  for (; !settle.finished() && round < 2'000; ++round)
    members.transfer(static_cast<Rank>(round % 3), round % kMany, (round * 3 + 1) % kMany);
  EXPECT_EQ(remote::describe(members.end_of(settle)), "done");
  EXPECT_GT(round, 3);
  EXPECT_EQ(members.sum(kLate, kMany), kMany * 100) << "STO-P9";
  members.world.crash(0);
  EXPECT_EQ(members.sum(kLate, kMany), kMany * 100) << "STO-P9: a copy lacks a transaction";
}

// --- what a death cuts off -----------------------------------------------------------------------

/// STO-4, STO-P11: once the death is known and nothing is under way, a change that was cut off has
/// happened at the owner and its copy, or at none.
TEST(StoreHazards, WhatADeathHasCutOffIsDecidedForGood) {
  const std::uint64_t kStepNs = 4'000 / test::rounds(4);
  std::uint64_t happened = 0, undone = 0;
  for (const bool inserts : {false, true})
    for (std::uint64_t moment = 2'000; moment < (inserts ? 200'000U : 80'000U); moment += kStepNs) {
      SCOPED_TRACE("the caller dies after " + std::to_string(moment) + " ns");
      CopiedMortals members(6, 5, two_copies());
      const std::string key = "key", before(400, 'b'), after(400, 'a');
      const Rank caller = 5;
      if (!inserts) members.put(0, key, before);
      members.get(caller, key);
      {
        auto change = members.at(caller).put(key, after);
        members.world.run_for(moment);
        members.world.crash(caller);
      }
      members.expect_restored(caller, {0, 1, 2, 3, 4});
      members.world.run_for(1'000'000);
      const std::string seen = members.get(0, key);
      EXPECT_TRUE(seen == after || seen == (inserts ? "-" : before)) << "STO-4";
      ++(seen == after ? happened : undone);
      const Rank owner = members.at(0).home_of(key);
      members.world.crash(owner);
      EXPECT_EQ(members.get(owner == 1 ? 2 : 1, key), seen)
          << "STO-4, STO-P11: it has happened at a copy alone";
      if (HasFailure()) return;
    }
  EXPECT_GT(happened, 0U);
  EXPECT_GT(undone, 0U);
}

// --- what is read while it is written ------------------------------------------------------------

/// STO-3: values of one length are put in place, and a get meets them half written.
TEST(StoreHazards, AGetNeverReturnsAHalfWrittenValue) {
  Mortals members(3, 1, Mortals::shuffling(), with_cache(roomy_store()));
  members.put(2, "key", std::string(900, 'a'));
  members.get(1, "key");  // its location is cached
  for (int round = 0; round < 200; ++round) {
    const std::string value(900, static_cast<char>('a' + round % 26));
    auto put = members.at(2).put("key", value);
    members.world.run_for(static_cast<std::uint64_t>(round) * 211 % 40'000);
    const std::string seen = members.get(1, "key");
    EXPECT_EQ(seen, std::string(900, seen.empty() ? ' ' : seen.front())) << "STO-3: it is torn";
    members.end_of(put);
    if (HasFailure()) return;
  }
  const std::uint64_t again =
      members.at(1).counters().at("read_again") + members.at(1).counters().at("cache_stale");
  EXPECT_GT(again, 0U) << "no get met a put";
}

}  // namespace
}  // namespace dunlin

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/sim_members.hpp"

/// Members that join later and take keys, while these are in use.
namespace dunlin {
namespace {

using remote::Status;
using test::Joining;
using test::kFounders;
using test::kLate;
using test::name_of;
using test::roomy_store;

// --- with one copy of each key, and with two -----------------------------------------------------

struct StoreJoin : testing::TestWithParam<std::uint32_t> {
  struct Members : Joining {
    /// So many founders hold keys; 0: all.
    explicit Members(std::uint32_t homes = 0) : Joining(options_for_test(homes)) {}
    static StoreOptions options_for_test(std::uint32_t homes) {
      StoreOptions options = roomy_store(homes);
      options.copies = GetParam();
      return options;
    }
    void expect_all_at_all(Rank last = kLate) {
      for (Rank by = 0; by <= last; ++by) expect_all(by);
    }
  };
  static bool has_copies() { return GetParam() == 2; }
};
INSTANTIATE_TEST_SUITE_P(Copies, StoreJoin, testing::Values(1, 2),
                         [](const auto& one) { return one.param == 1 ? "One" : "Two"; });

TEST_P(StoreJoin, AMemberGetsItsShare) {
  Members members;
  members.fill(60);
  members.join(kLate);
  members.expect_all_at_all();  // the locations are cached
  EXPECT_EQ(remote::describe(members.settle(kLate)), "done");
  EXPECT_GT(members.keys_at(kLate), 0U);
  members.expect_complete({0, 1, 2, kLate});
  members.expect_all_at_all();
  members.expect_local_once({0, 1, 2, kLate});
  for (int key = 0; key < 60; key += 7) members.change(1, key, "after");
  for (const StorePlacement::Member& one : members.at(1).placement().members) {
    EXPECT_GE(one.owned, 14U) << "16 of 64 are a fair share";
    EXPECT_LE(one.owned, 18U);
  }
  const std::uint64_t there = members.first_at(kLate, 1);
  if (!has_copies()) {
    EXPECT_EQ(there, members.keys_at(kLate));
  }
  EXPECT_GT(there, 4U);
  EXPECT_LT(there, 32U);
  members.join(kLate + 1);
  EXPECT_EQ(remote::describe(members.settle(kLate + 1)), "done");
  members.expect_all_at_all(kLate + 1);
}

TEST_P(StoreJoin, TheMemberLeavesAgainAndSoDoesAHome) {
  Members members(has_copies() ? 0 : 2);  // else the third founder is a client, without memory
  members.fill(40);
  members.join(kLate);
  if (has_copies()) members.join(kLate + 1);  // contributes, and has no keys
  EXPECT_EQ(members.settle(kLate), Status::ok);
  if (!has_copies()) {
    EXPECT_EQ(members.keys_at(2), 0U);
  }
  EXPECT_EQ(remote::describe(members.leave(kLate)), "done") << "STO-M8";
  EXPECT_EQ(members.keys_at(kLate), 0U);
  members.expect_all(kLate);
  members.part(kLate);
  members.expect_all(2);
  // The rest of the home follows what it has given.
  const Rank gave = members.giver(2);
  EXPECT_EQ(remote::describe(members.leave(gave)), "done");
  EXPECT_EQ(members.keys_at(gave), 0U);
  const Rank by = gave == 0 ? 1 : 0;
  members.part(gave, by);
  members.expect_all(by);
  if (!has_copies()) members.join(kLate + 1);  // has met neither
  members.expect_all(kLate + 1);
  if (!has_copies()) return;
  std::vector<Rank> homes;
  for (Rank rank = 0; rank <= kLate + 1; ++rank)
    if (rank != gave && rank != kLate) homes.push_back(rank);
  members.expect_complete(homes);
  members.expect_local_once(homes);
  members.world.crash(gave == 2 ? 1 : 2);
  members.expect_gets(by);
}

TEST_P(StoreJoin, LeaveWaitsForKeysThatAreBeingTaken) {
  Members members(has_copies() ? 0 : 1);
  members.fill(40);
  members.join(kLate);
  auto take = members.at(kLate).settle();
  members.world.run_until([&] { return members.keys_at(kLate) > 0; }, 1'000'000'000);
  const Rank gives = members.giver(has_copies() ? 2 : 0);
  auto leave = members.at(gives).leave();
  EXPECT_EQ(remote::describe(members.end_of(take)), "done");
  EXPECT_EQ(remote::describe(members.end_of(leave)), "done");
  EXPECT_EQ(members.keys_at(gives), 0U);
  EXPECT_GT(members.keys_at(kLate), has_copies() ? 0U : 39U);
  members.expect_all_at_all();
}

TEST_P(StoreJoin, TwoMembersAskAtOnce) {
  Members members;
  members.fill(60);
  members.join(kLate);
  members.join(kLate + 1);
  auto one = members.at(kLate).settle();
  auto other = members.at(kLate + 1).settle();
  EXPECT_EQ(remote::describe(members.end_of(one)), "done");
  EXPECT_EQ(remote::describe(members.end_of(other)), "done");
  EXPECT_GT(members.keys_at(kLate), 0U);
  EXPECT_GT(members.keys_at(kLate + 1), 0U);
  members.expect_all_at_all(kLate + 1);
  EXPECT_EQ(remote::describe(members.leave(kLate)), "done");
  members.expect_all_at_all(kLate + 1);
  if (!has_copies()) return;
  members.world.crash(kLate + 1);
  members.expect_gets(0);
}

TEST_P(StoreJoin, GoesOnWithoutItsCaller) {
  Members members;
  members.fill(30);
  members.join(kLate);
  { auto take = members.at(kLate).settle(); }
  EXPECT_TRUE(members.world.run_until([&] { return members.keys_at(kLate) > 0; }, 1'000'000'000));
  EXPECT_EQ(members.settle(kLate), Status::ok);
  members.expect_all(1);
}

TEST_P(StoreJoin, VersionsAndTimesToLiveMove) {
  for (const Rank dies : {Rank{0}, kLate, kLate + 1}) {  // + 1: none
    if (dies <= kLate && !has_copies()) continue;
    Members members;
    std::map<std::string, std::uint64_t> versions;
    for (int key = 0; key < 24; ++key) {
      auto put = members.at(1).put(name_of(key), "value", 900'000'000);
      EXPECT_EQ(members.end_of(put), Status::ok);
      versions[name_of(key)] = put.version();
    }
    for (int key = 0; key < 24; key += 2) members.erase(2, name_of(key));
    members.join(kLate);
    EXPECT_EQ(members.settle(kLate), Status::ok);
    if (dies <= kLate) members.world.crash(dies);
    for (int key = 0; key < 24; key += 2) {
      EXPECT_EQ(members.get(2, name_of(key)), "-") << "an erased key came back";
      auto put = members.at(1).put(name_of(key), "again");
      EXPECT_EQ(members.end_of(put), Status::ok);
      EXPECT_GT(put.version(), versions[name_of(key)]) << "STO-M3";
    }
    for (int key = 1; key < 24; key += 2) EXPECT_EQ(members.get(2, name_of(key)), "value");
    members.world.run_for(1'000'000'000);
    for (int key = 0; key < 24; ++key)
      EXPECT_EQ(members.get(2, name_of(key)), key % 2 == 0 ? "again" : "-");
  }
}

TEST_P(StoreJoin, AClientHoldsNothingAndCannotLeave) {
  Members members;
  members.fill(20);
  members.options.contributes = false;
  members.join(kLate);
  EXPECT_EQ(remote::describe(members.settle(kLate)), "done");
  EXPECT_EQ(members.keys_at(kLate), 0U);
  EXPECT_EQ(members.leave(kLate), Status::not_allowed);
  members.expect_all_at_all();
}

TEST_P(StoreJoin, AScanReturnsEachKeyOnceWhileTheyMove) {
  for (std::uint64_t pause = 1'000; pause < 60'000; pause += 6'000) {
    SCOPED_TRACE("STO-M2: pause " + std::to_string(pause));
    Members members;
    members.fill(60);
    members.join(kLate);
    auto take = members.at(kLate).settle();
    for (int scan = 0; !take.finished(); ++scan) {
      ASSERT_LT(scan, 1'000) << "hangs";
      EXPECT_EQ(members.scanned(2, pause), members.expected);
    }
    EXPECT_EQ(remote::describe(take.status()), "done");
    EXPECT_EQ(members.scanned(kLate, pause), members.expected);
  }
}

/// Transactions conflict with the move of their keys, and find them then.
TEST_P(StoreJoin, TransactionsGoOn) {
  constexpr int kMany = 12;
  Members members;
  for (int key = 0; key < kMany; ++key) members.put(0, name_of(key), "100");
  members.join(kLate);
  auto take = members.at(kLate).settle();
  for (int round = 0; round < 30 || !take.finished(); ++round) {
    members.transfer(round % 2 == 0 ? 2 : kLate, round % kMany, (round * 5 + 1) % kMany);
    ASSERT_LT(round, 10'000) << "hangs";
  }
  EXPECT_EQ(remote::describe(take.status()), "done");
  if (has_copies()) members.world.crash(kLate);
  EXPECT_EQ(members.sum(0, kMany), kMany * 100) << "STO-7";
}

/// The home that would be asked dies while the member looks at the others.
TEST_P(StoreJoin, AHomeMayDieBeforeItIsAsked) {
  for (Rank dies = 0; dies < kFounders; ++dies)
    for (std::uint64_t moment = 0; moment < 40'000; moment += 2'000 * GetParam()) {
      SCOPED_TRACE("home " + std::to_string(dies) + " dies after " + std::to_string(moment));
      Members members;
      members.fill(20);
      members.join(kLate);
      auto take = members.at(kLate).settle();
      members.world.run_for(moment);
      members.world.crash(dies);
      const Status status = members.end_of(take);
      EXPECT_TRUE(status == Status::ok || status == Status::lost) << remote::describe(status);
      if (has_copies()) members.expect_gets(kLate);
      if (HasFailure()) return;
    }
}

// --- with one copy -------------------------------------------------------------------------------

/// A member that has come takes the place of the one that has gone, for those that know neither.
TEST(StoreJoin, AMemberReplacesAnother) {
  Joining members(roomy_store(1));
  members.fill(40);
  members.join(kLate);
  EXPECT_EQ(members.settle(kLate), Status::ok);
  const std::uint64_t given = members.keys_at(kLate);
  EXPECT_GT(given, 8U);
  EXPECT_EQ(members.keys_at(0), 40 - given);
  EXPECT_EQ(members.leave(0), Status::ok);
  EXPECT_EQ(members.keys_at(kLate), 40U);
  members.part(0, 1);
  members.expect_all(1);
  members.join(kLate + 1);
  members.expect_all(kLate + 1);
}

TEST(StoreJoin, IndexesGrowAfterwards) {
  Joining members(roomy_store(1));
  members.fill(20);
  members.join(kLate);
  EXPECT_EQ(members.settle(kLate), Status::ok);
  const std::uint64_t splits = members.at(0).counters().at("splits");
  const std::uint64_t late_splits = members.at(kLate).counters().at("splits");
  for (int key = 20; key < 300; ++key)
    members.put(static_cast<Rank>(key % 4), name_of(key), members.expected[name_of(key)] = "later");
  members.world.run_for(30'000'000);
  EXPECT_GT(members.at(0).counters().at("splits"), splits + 4) << "STO-10";
  EXPECT_GT(members.at(kLate).counters().at("splits"), late_splits + 4) << "STO-10";
  for (Rank by = 0; by <= kLate; ++by) members.expect_all(by);
  EXPECT_EQ(members.leave(kLate), Status::ok);
  EXPECT_EQ(members.leave(0), Status::not_allowed) << "no other one holds keys";
  members.join(kLate + 1);
  EXPECT_EQ(members.settle(kLate + 1), Status::ok);
  EXPECT_EQ(members.leave(0), Status::ok);
  for (const Rank by : {Rank{0}, Rank{2}, kLate, kLate + 1}) members.expect_all(by);
}

TEST(StoreJoin, WithoutRoomNothingIsLostAndItGoesOn) {
  StoreOptions options = roomy_store(1);
  options.memory_bytes = 8 << 20;
  options.cache_bytes = 0;  // all of them look for the chains
  Joining members(options, 1);
  for (int key = 0; key < 300; ++key)
    members.put(0, name_of(key),
                members.expected[name_of(key)] = std::string(8'000, 'v') + name_of(key));
  members.options.memory_bytes = kMinStoreBytes;
  members.join(kLate);
  members.at(kLate).set_weight(8);  // as if it had as much memory as the other one
  for (const Rank by : {Rank{1}, Rank{2}})
    for (const auto& [key, value] : members.expected) EXPECT_EQ(members.get(by, key), value);
  EXPECT_EQ(members.settle(kLate), Status::ok);
  EXPECT_TRUE(std::ranges::any_of(members.at(1).placement().members,
                                  [](const auto& one) { return !one.takes; }));
  // By locations of the home's memory, of which there is more.
  for (const auto& [key, value] : members.expected) EXPECT_EQ(members.get(1, key), value) << key;
  // The index of the home grows, and the other member has not been told of the chains that moved.
  const std::uint64_t splits = members.at(0).counters().at("splits");
  for (int key = 300; key < 900; ++key) {
    if (members.end_of(members.at(0).put(name_of(key), "small")) == Status::ok)
      members.expected[name_of(key)] = "small";
  }
  members.world.run_for(30'000'000);
  EXPECT_GT(members.at(0).counters().at("splits"), splits);
  for (const auto& [key, value] : members.expected)
    EXPECT_EQ(members.get(2, key), value) << "STO-M1: " << key;
  EXPECT_EQ(members.scanned(2), members.expected);
  const auto all = members.expected;
  for (const auto& [key, value] : all)
    if (key.back() != '7') members.erase(0, key);
  members.world.run_for(2'000'000'000);
  EXPECT_EQ(members.settle(kLate), Status::ok);
  EXPECT_EQ(members.at(1).placement().members.back().owned, 32U);
  members.expect_all(1);
}

TEST(StoreJoin, AMemberOfAStoreThatEvictsGetsItsShare) {
  StoreOptions lru = roomy_store();
  lru.eviction = Eviction::lru;
  Joining members(lru);
  members.fill(40);
  members.join(kLate);
  EXPECT_EQ(remote::describe(members.settle(kLate)), "done");
  EXPECT_GT(members.keys_at(kLate), 0U);
  for (Rank by = 0; by <= kLate; ++by) members.expect_all(by);
  EXPECT_EQ(remote::describe(members.leave(1)), "done");
  EXPECT_EQ(members.keys_at(1), 0U);
  for (Rank by = 0; by <= kLate; ++by) members.expect_all(by);
}

/// STO-M5, at any moment: what a dead member had is lost or, if it has moved, still there.
TEST(StoreJoin, ADeathAmidAMoveLosesOnlyWhatTheDeadMemberHas) {
  std::uint64_t moved = 0, lost = 0;
  for (const Rank dies : {Rank{0}, Rank{1}, kLate})  // that gives, a client, that takes
    for (std::uint64_t moment = 0; moment < 1'200'000; moment += 60'000) {
      SCOPED_TRACE("member " + std::to_string(dies) + " dies after " + std::to_string(moment));
      Joining members(roomy_store(1));
      members.fill(24);
      members.join(kLate);
      auto take = members.at(kLate).settle();
      members.world.run_for(moment);
      members.world.crash(dies);
      if (dies != kLate) {
        const Status status = members.end_of(take);
        EXPECT_TRUE(status == Status::ok || (dies == 0 && status == Status::lost));
      }
      members.until_gone(dies, 2);
      if (dies != kLate) members.join(kLate + 1);  // it knows of no move
      for (const Rank by : {Rank{2}, dies == kLate ? Rank{1} : kLate + 1})
        for (const auto& [key, value] : members.expected) {
          auto get = members.at(by).get(key);
          const Status status = members.end_of(get);
          EXPECT_TRUE(status == Status::ok || (dies != 1 && status == Status::lost))
              << key << ": " << remote::describe(status);
          if (status == Status::ok) {
            EXPECT_EQ(get.text(), value) << "STO-M5: " << key;
          }
          if (status == Status::lost) ++lost;
          if (status == Status::ok && dies == 0) ++moved;
        }
      if (testing::Test::HasFailure()) return;
    }
  EXPECT_GT(moved, 0U);
  EXPECT_GT(lost, 0U);
}

}  // namespace
}  // namespace dunlin

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/sim_members.hpp"

/// Homes that leave on purpose, while their keys are in use.
namespace dunlin {
namespace {

using remote::Status;
using test::Mortals;
using test::name_of;
using test::roomy_store;

// --- with one copy of each key, and with two -----------------------------------------------------

struct StoreLeave : testing::TestWithParam<std::uint32_t> {
  struct Members : Mortals {
    explicit Members(std::uint32_t homes = 5) : Mortals(6, homes, network(), options_for_test()) {}
    static StoreOptions options_for_test() {
      StoreOptions options = roomy_store();
      options.copies = GetParam();
      return options;
    }
  };
  static bool has_copies() { return GetParam() == 2; }
};
INSTANTIATE_TEST_SUITE_P(Copies, StoreLeave, testing::Values(1, 2),
                         [](const auto& one) { return one.param == 1 ? "One" : "Two"; });

TEST_P(StoreLeave, OneHomeAfterTheOtherLeavesAndNoKeyIsLost) {
  Members members(has_copies() ? 5 : 4);
  members.fill(60);
  members.erase(1, name_of(7));
  for (const Rank leaves : {Rank{2}, Rank{3}, Rank{0}}) {
    members.expect_all(1);  // the locations are cached
    EXPECT_EQ(remote::describe(members.leave(leaves)), "done");
    EXPECT_GT(members.at(leaves).counters().at("keys_moved"), 0U);
    EXPECT_EQ(members.keys_at(leaves), 0U);
    EXPECT_EQ(members.at(leaves).statistics().value_bytes, 0U) << "STO-M6";
    for (const Rank by : {Rank{1}, leaves, Rank{5}}) members.expect_all(by);
    for (int key = 0; key < 60; key += 9) members.change(1, key, "after " + std::to_string(leaves));
    for (const Rank by : {Rank{1}, leaves, Rank{5}})
      for (int key = 0; key < 60; ++key) EXPECT_NE(members.at(by).home_of(name_of(key)), leaves);
    members.expect_complete({1, 4});
    for (const Rank by : {Rank{4}, leaves, Rank{5}})
      EXPECT_EQ(members.count(by), members.expected.size());
    members.expect_local_once(has_copies() ? std::vector<Rank>{0, 1, 2, 3, 4}
                                           : std::vector<Rank>{0, 1, 2, 3});
    members.part(leaves, 1);
    members.expect_all(4);
    if (HasFailure()) return;
  }
  EXPECT_EQ(members.leave(1), Status::not_allowed) << "no home, or no second copies, would be left";
  members.expect_all(5);
  if (!has_copies()) return;
  members.world.crash(4);
  members.expect_gets(1);
}

TEST_P(StoreLeave, TwoHomesMayLeaveAtOnce) {
  for (const auto& [one, other] :
       {std::pair{Rank{0}, Rank{1}}, {Rank{1}, Rank{0}}, {Rank{2}, Rank{0}}, {3, 2}, {4, 0}}) {
    SCOPED_TRACE(std::to_string(one) + " and " + std::to_string(other));
    Members members;
    members.fill(40);
    auto first = members.at(one).leave();
    auto second = members.at(other).leave();
    EXPECT_EQ(remote::describe(members.end_of(first)), "done");
    EXPECT_EQ(remote::describe(members.end_of(second)), "done");
    for (const Rank left : {one, other}) EXPECT_EQ(members.keys_at(left), 0U);
    members.expect_all(5);
    if (!has_copies()) continue;
    Rank dies = 0;
    while (dies == one || dies == other) ++dies;
    members.world.crash(dies);
    members.expect_gets(5);
  }
}

/// With two copies, the last home has got the key's chain from homes at which it was erased before.
TEST_P(StoreLeave, AVersionIsNeverGivenAgain) {
  for (const Rank dies : {Rank{0}, Rank{3}, Rank{4}, Rank{5}}) {
    if (dies < 5 && !has_copies()) continue;
    Members members;
    const std::string key = members.key_at(1);
    std::uint64_t last = 0;
    for (int round = 0; round < 10; ++round) {
      auto put = members.at(0).put(key, std::to_string(round));
      members.end_of(put);
      last = put.version();
      members.erase(2, key);
    }
    for (const Rank leaves : {Rank{1}, Rank{2}}) EXPECT_EQ(members.leave(leaves), Status::ok);
    if (dies < 5) members.world.crash(dies);
    auto put = members.at(1).put(key, "again");
    EXPECT_EQ(members.end_of(put), Status::ok);
    EXPECT_GT(put.version(), last) << "STO-M3";
  }
}

TEST_P(StoreLeave, TimesToLiveMove) {
  for (const Rank home : {Rank{0}, Rank{1}}) {  // 1 may have the second copy, or the first one
    Members members;
    const std::string key = members.key_at(home);
    EXPECT_EQ(members.end_of(members.at(0).put(key, "value", 400'000'000)), Status::ok);
    EXPECT_EQ(members.leave(1), Status::ok);
    EXPECT_EQ(members.get(1, key), "value");
    if (has_copies()) members.world.crash(members.at(5).home_of(key));
    EXPECT_EQ(members.get(5, key), "value");
    members.world.run_for(450'000'000);
    EXPECT_EQ(members.get(5, key), "-");
  }
}

/// Transactions conflict with the move of their keys, and find them then.
TEST_P(StoreLeave, TransactionsGoOn) {
  constexpr int kMany = 12;
  Members members;
  for (int key = 0; key < kMany; ++key) members.put(0, name_of(key), "100");
  for (const Rank leaves : {Rank{1}, Rank{2}}) {
    auto leave = members.at(leaves).leave();
    for (int round = 0; !leave.finished(); ++round) {
      members.transfer(round % 2 == 0 ? 5 : leaves, round % kMany, (round * 5 + 1) % kMany);
      ASSERT_LT(round, 10'000) << "hangs";
    }
    EXPECT_EQ(remote::describe(leave.status()), "done");
    for (int round = 0; round < 20; ++round)
      members.transfer(5, round % kMany, (round * 7 + 1) % kMany);
  }
  if (has_copies()) members.world.crash(3);
  EXPECT_EQ(members.sum(0, kMany), kMany * 100) << "STO-7";
}

TEST_P(StoreLeave, AScanReturnsEachKeyOnceWhileTheyMove) {
  for (std::uint64_t pause = 1'000; pause < 60'000; pause += 6'000) {
    SCOPED_TRACE("STO-M2: pause " + std::to_string(pause));
    Members members;
    members.fill(60);
    auto leave = members.at(1).leave();
    for (int scan = 0; !leave.finished(); ++scan) {
      ASSERT_LT(scan, 1'000) << "hangs";
      EXPECT_EQ(members.scanned(5, pause), members.expected);
    }
    EXPECT_EQ(remote::describe(leave.status()), "done");
    EXPECT_EQ(members.scanned(1, pause), members.expected);
  }
}

// --- with one copy -------------------------------------------------------------------------------

/// STO-M5, at any moment: what a dead home had is lost or, if it has moved, still there.
TEST(StoreLeave, ADeathAmidAMoveLosesOnlyWhatTheDeadHomeHas) {
  std::uint64_t moved = 0, lost = 0;
  for (const Rank dies : {Rank{1}, Rank{2}, Rank{3}})  // that leaves, that gets the keys, a client
    for (std::uint64_t moment = 0; moment < 1'500'000; moment += 60'000) {
      SCOPED_TRACE("member " + std::to_string(dies) + " dies after " + std::to_string(moment));
      Mortals mortals(4, 3, Mortals::network(), roomy_store());
      mortals.fill(30);
      std::map<std::string, Rank> homes;
      for (const auto& [key, value] : mortals.expected) homes[key] = mortals.at(0).home_of(key);
      auto leave = mortals.at(1).leave();
      mortals.world.run_for(moment);
      mortals.world.crash(dies);
      if (dies != 1) {
        EXPECT_EQ(remote::describe(mortals.end_of(leave)), "done");
      }
      for (const auto& [key, value] : mortals.expected) {
        auto get = mortals.at(0).get(key);
        const Status status = mortals.end_of(get);
        const bool may_be_lost = dies != 3 && (homes[key] == dies || homes[key] == 1);
        EXPECT_TRUE(status == Status::ok || (may_be_lost && status == Status::lost))
            << key << ": " << remote::describe(status);
        if (status == Status::ok) {
          EXPECT_EQ(get.text(), value) << "STO-M5: " << key;
        }
        if (status == Status::lost) ++lost;
        if (status == Status::ok && dies == 1 && homes[key] == 1) ++moved;
      }
      if (testing::Test::HasFailure()) return;
    }
  EXPECT_GT(moved, 0U);
  EXPECT_GT(lost, 0U);
}

TEST(StoreLeave, WithoutRoomAtTheOtherHomeEndsAndCallsGoOn) {
  Mortals mortals(2, 2);
  // By the member that leaves: it has the slabs in which there will be room.
  mortals.fill_up(400, {1});
  EXPECT_EQ(mortals.leave(1), Status::no_room);
  mortals.expect_gets(0, "STO-M1");
  // With room it goes on.
  int left = 0;
  const auto all = mortals.expected;
  for (const auto& [key, value] : all)
    if (++left > 40) mortals.erase(0, key);
  EXPECT_EQ(mortals.leave(1), Status::ok);
  mortals.expect_gets(0, "STO-M1");
}

TEST(StoreLeave, IsRefusedWhereItIsNotOffered) {
  StoreOptions options = test::tiny_store();
  options.copies = 2;
  Mortals with_copies(3, 2, Mortals::network(), options);
  EXPECT_EQ(with_copies.leave(1), Status::not_allowed) << "one home has no second copies";
  Mortals one(3, 2);
  EXPECT_EQ(one.leave(2), Status::not_allowed) << "a client";
}

}  // namespace
}  // namespace dunlin

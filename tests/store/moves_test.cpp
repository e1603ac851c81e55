#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/two_copies.hpp"
#include "support/rounds.hpp"

/// Homes that leave on purpose, in a store with two copies of each key, while the keys are in use.
namespace dunlin {
namespace {

using remote::Status;
using test::CopiedMortals;
using test::Mortals;
using test::name_of;
using test::two_copies;

std::string key_at(Store& store, Rank home) {
  std::string key = "key";
  while (store.home_of(key) != home) key += "y";
  return key;
}

TEST(StoreMoves, OneHomeAfterTheOtherLeavesAndNoKeyIsLost) {
  CopiedMortals members;
  members.fill(60);
  members.erase(1, name_of(7));
  std::vector<Rank> homes{0, 1, 2, 3, 4};
  for (const Rank leaves : {Rank{2}, Rank{3}, Rank{0}}) {
    members.expect_all(1, "STO-M1");  // the locations are cached
    EXPECT_EQ(remote::describe(members.leave(leaves)), "done");
    std::erase(homes, leaves);
    EXPECT_GT(members.at(leaves).counters().at("keys_moved"), 0U);
    EXPECT_EQ(members.at(leaves).statistics().keys, 0U);
    EXPECT_EQ(members.at(leaves).statistics().value_bytes, 0U);
    for (const Rank by : {Rank{1}, leaves, Rank{5}}) members.expect_all(by, "STO-M1");
    for (int key = 0; key < 60; key += 9) members.change(1, key, "after " + std::to_string(leaves));
    for (const Rank by : {Rank{1}, leaves, Rank{5}})
      for (int key = 0; key < 60; ++key) EXPECT_NE(members.at(by).home_of(name_of(key)), leaves);
    members.expect_complete({1, 4});
    for (const Rank by : {Rank{4}, leaves, Rank{5}}) members.expect_count(by);
    test::expect_local_once(members.expected, {0, 1, 2, 3, 4},
                            [&](Rank rank) -> Store& { return members.at(rank); });
    members.part(leaves, 1);
    members.expect_all(4, "STO-M1");
    if (HasFailure()) return;
  }
  EXPECT_EQ(members.leave(1), Status::not_allowed) << "one home has no second copies";
  EXPECT_EQ(members.at(1).counters().at("keys_moved"), 0U);
  members.expect_all(5, "STO-M1");
  members.world.crash(4);
  members.expect_all(1, "STO-C1");
}

/// At each of these moments, the next home to die has the only other copies of some keys.
TEST(StoreMoves, EachHomeMayDieAfterTheLeave) {
  for (const Rank dies : {Rank{0}, Rank{2}, Rank{3}, Rank{4}}) {
    SCOPED_TRACE("home " + std::to_string(dies) + " dies");
    CopiedMortals members;
    members.fill(40);
    EXPECT_EQ(remote::describe(members.leave(1)), "done");
    members.world.crash(dies);
    members.expect_all(5, "STO-C1");
    members.expect_all(1, "STO-C1");
  }
}

/// STO-M4 promises what this test checks.
TEST(StoreMoves, TwoHomesThatLeaveAtOnceLeaveOneAfterTheOther) {
  for (const auto& [one, other] :
       {std::pair{Rank{0}, Rank{1}}, {Rank{1}, Rank{0}}, {Rank{2}, Rank{0}}, {3, 2}, {4, 0}}) {
    SCOPED_TRACE(std::to_string(one) + " and " + std::to_string(other));
    CopiedMortals members;
    members.fill(40);
    auto first = members.at(one).leave();
    auto second = members.at(other).leave();
    EXPECT_EQ(remote::describe(members.end_of(first)), "done");
    EXPECT_EQ(remote::describe(members.end_of(second)), "done");
    for (const Rank left : {one, other}) EXPECT_EQ(members.at(left).statistics().keys, 0U);
    members.expect_all(5, "STO-M1");
    members.expect_count(5);
    Rank dies = 0;
    while (dies == one || dies == other) ++dies;
    members.world.crash(dies);
    members.expect_all(5, "STO-C1");
  }
}

TEST(StoreMoves, OfThreeHomesOnlyOneOfTwoThatAskAtOnceLeaves) {
  for (const auto& [one, other] : {std::pair{Rank{0}, Rank{1}}, {Rank{1}, Rank{0}}, {2, 0}}) {
    CopiedMortals members(4, 3);
    members.fill(30);
    auto first = members.at(one).leave();
    auto second = members.at(other).leave();
    const bool one_left = members.end_of(first) == Status::ok;
    const bool other_left = members.end_of(second) == Status::ok;
    EXPECT_NE(one_left, other_left);
    EXPECT_EQ((one_left ? second : first).status(), Status::not_allowed);
    members.expect_all(3, "STO-M1");
    members.world.crash(one_left ? other : one);
    members.expect_all(3, "STO-C1");
  }
}

/// The last home has got the key's chain from homes at which it was erased before.
TEST(StoreMoves, AVersionIsNeverGivenAgain) {
  for (const Rank dies : {Rank{0}, Rank{3}, Rank{4}, Rank{5}}) {  // 5: none
    CopiedMortals members(5, 5);
    const std::string key = key_at(members.at(0), 1);
    std::uint64_t last = 0;
    for (int round = 0; round < 10; ++round) {
      auto put = members.at(0).put(key, std::to_string(round));
      members.end_of(put);
      last = put.version();
      auto erase = members.at(2).erase(key);
      members.end_of(erase);
    }
    for (const Rank leaves : {Rank{1}, Rank{2}}) EXPECT_EQ(members.leave(leaves), Status::ok);
    if (dies < 5) members.world.crash(dies);
    auto put = members.at(1).put(key, "again");
    EXPECT_EQ(members.end_of(put), Status::ok);
    EXPECT_GT(put.version(), last) << "STO-M3";
  }
}

TEST(StoreMoves, TimesToLiveMoveWithBothCopies) {
  for (const Rank home : {Rank{0}, Rank{1}}) {  // 1 has the second copy, or the first one
    CopiedMortals members;
    const std::string key = key_at(members.at(0), home);
    auto put = members.at(0).put(key, "value", 400'000'000);
    EXPECT_EQ(members.end_of(put), Status::ok);
    EXPECT_EQ(members.leave(1), Status::ok);
    EXPECT_EQ(members.get(1, key), "value");
    members.world.crash(members.at(5).home_of(key));
    EXPECT_EQ(members.get(5, key), "value");
    members.world.run_for(450'000'000);
    EXPECT_EQ(members.get(5, key), "-");
  }
}

/// A home that got a first place, or a second one, dies as soon as the other one has left.
TEST(StoreMoves, WhatIsPutWhileAHomeLeavesIsAtTwoHomesThatStay) {
  for (const Rank dies : {Rank{0}, Rank{2}, Rank{3}}) {
    SCOPED_TRACE("home " + std::to_string(dies) + " dies");
    CopiedMortals members;
    members.fill(40);
    auto leave = members.at(1).leave();
    for (int i = 0; !leave.finished(); ++i) {
      members.change(static_cast<Rank>(2 * (i % 3)), i % 40, "round " + std::to_string(i));
      if (i % 11 == 0) members.erase(5, name_of(i % 40));
      ASSERT_LT(i, 100'000) << "hangs";
    }
    EXPECT_EQ(remote::describe(leave.status()), "done");
    members.world.crash(dies);
    members.expect_all(4, "STO-C1");
    for (int key = 0; key < 40; ++key)
      if (!members.expected.contains(name_of(key))) {
        EXPECT_EQ(members.get(4, name_of(key)), "-") << "an erased key came back";
      }
  }
}

/// Transactions conflict with the move of their keys, and find them then.
TEST(StoreMoves, TransactionsGoOn) {
  constexpr int kMany = 12;
  CopiedMortals members;
  for (int key = 0; key < kMany; ++key) members.put(0, name_of(key), "100");
  const auto transfer = [&](Rank by, int from, int to) {
    Status status = Status::conflict;
    for (int tries = 0; tries < 200 && status == Status::conflict; ++tries) {
      StoreTransaction moves(members.at(by));
      const auto read = [&](int key) {
        StoreOperation& get = moves.get(name_of(key));
        members.end_of(get);
        return std::stoi(std::string(get.text()));
      };
      const int has = read(from), other = read(to);
      moves.put(name_of(from), std::to_string(has - 1));
      moves.put(name_of(to), std::to_string(other + 1));
      status = members.end_of(moves.commit());
    }
    EXPECT_EQ(remote::describe(status), "done") << "STO-M1";
  };
  for (const Rank leaves : {Rank{1}, Rank{2}}) {
    auto leave = members.at(leaves).leave();
    for (int round = 0; !leave.finished(); ++round) {
      transfer(round % 2 == 0 ? 5 : leaves, round % kMany, (round * 5 + 1) % kMany);
      ASSERT_LT(round, 10'000) << "hangs";
    }
    EXPECT_EQ(remote::describe(leave.status()), "done");
    for (int round = 0; round < 20; ++round) transfer(5, round % kMany, (round * 7 + 1) % kMany);
  }
  members.world.crash(3);
  int sum = 0;
  for (int key = 0; key < kMany; ++key) sum += std::stoi(members.get(0, name_of(key)));
  EXPECT_EQ(sum, kMany * 100) << "STO-7";
}

TEST(StoreMoves, AScanReturnsEachKeyOnceWhileAHomeLeaves) {
  for (std::uint64_t pause = 1'000; pause < 60'000; pause += 6'000) {
    CopiedMortals members;
    members.fill(60);
    auto leave = members.at(1).leave();
    for (int scan = 0; !leave.finished(); ++scan) {
      ASSERT_LT(scan, 1'000) << "hangs";
      EXPECT_EQ(members.scanned(5, 1, pause), members.expected) << "STO-M2: pause " << pause;
    }
    EXPECT_EQ(remote::describe(leave.status()), "done");
    EXPECT_EQ(members.scanned(1, 1, pause), members.expected) << "STO-M2: pause " << pause;
  }
}

TEST(StoreMoves, WithoutRoomAtAnotherHomeEndsAndGoesOnWithRoom) {
  StoreOptions options = Mortals::tiny_store();
  options.copies = 2;
  CopiedMortals members(4, 3, options);
  for (int key = 0; key < 400; ++key) {
    const std::string value = std::string(4'000, 'v') + name_of(key);
    auto put = members.at(static_cast<Rank>(key % 3)).put(name_of(key), value);
    const Status status = members.end_of(put);
    EXPECT_TRUE(status == Status::ok || status == Status::no_room) << remote::describe(status);
    if (status == Status::ok) members.expected[name_of(key)] = value;
  }
  EXPECT_EQ(members.leave(1), Status::no_room);
  members.expect_all(0, "STO-M1");
  members.expect_all(1, "STO-M1");
  int left = 0;
  const auto all = members.expected;
  for (const auto& [key, value] : all)
    if (++left > 20) members.erase(static_cast<Rank>(left % 3), key);
  EXPECT_EQ(remote::describe(members.leave(1)), "done") << "goes on with room";
  EXPECT_EQ(members.at(1).statistics().keys, 0U);
  members.expect_all(0, "STO-M1");
  members.world.crash(2);
  members.expect_all(3, "STO-C1");
  for (const auto& [key, value] : all)
    if (!members.expected.contains(key)) {
      EXPECT_EQ(members.get(3, key), "-") << "an erased key came back";
    }
}

/// After a leave without room each key is at two homes. Where only the home that began to leave has
/// keys of a home that dies, and there is no room for them where they go to, they are lost.
TEST(StoreMoves, WithoutRoomADeathLosesNothing) {
  for (const Rank dies : {Rank{0}, Rank{1}, Rank{2}}) {
    StoreOptions options = Mortals::tiny_store();
    options.copies = 2;
    CopiedMortals members(4, 3, options);
    for (int key = 0; key < 400; ++key) {
      const std::string value = std::string(4'000, 'v') + name_of(key);
      auto put = members.at(3).put(name_of(key), value);
      if (members.end_of(put) == Status::ok) members.expected[name_of(key)] = value;
    }
    EXPECT_EQ(members.leave(1), Status::no_room);
    members.world.crash(dies);
    std::size_t lost = 0;
    for (const auto& [key, value] : members.expected) {
      auto get = members.at(3).get(key);
      const Status status = members.end_of(get);
      if (status == Status::lost && dies == 0) {
        ++lost;
        continue;
      }
      ASSERT_EQ(remote::describe(status), "done") << key;
      EXPECT_EQ(get.text(), value) << "STO-C1: " << key;
    }
    EXPECT_LT(lost, members.expected.size() / 2);
  }
}

StoreOptions store_for_large_values() {
  StoreOptions options = two_copies();
  options.memory_bytes = 24 << 20;
  options.large_bytes = 18 << 20;
  return options;
}
void fill_with_large(CopiedMortals& members) {
  const std::array sizes{kMaxStoreValueBytes, std::size_t{200'000}, std::size_t{40'000}};
  for (int key = 0; key < 6; ++key) {
    const std::string value(sizes.at(static_cast<std::size_t>(key) % 3),
                            static_cast<char>('a' + key));
    members.put(0, name_of(key), value);
    members.expected[name_of(key)] = value;
  }
}

TEST(StoreMoves, LargeValuesMove) {
  CopiedMortals members(5, 4, store_for_large_values());
  fill_with_large(members);
  for (const Rank leaves : {Rank{1}, Rank{0}}) {
    EXPECT_EQ(remote::describe(members.leave(leaves)), "done");
    members.expect_all(4, "STO-M1");
  }
  members.world.crash(2);
  members.expect_all(4, "STO-C1");
}

TEST(StoreMoves, ADeathAmidTheMoveOfALargeValueLosesNothing) {
  const std::uint32_t kMoments = test::rounds(2);
  for (const Rank dies : {Rank{0}, Rank{1}, Rank{3}})
    for (std::uint32_t i = 0; i < kMoments; ++i) {
      const std::uint64_t moment = 5'000'000 + i * std::uint64_t{14'000'000};
      SCOPED_TRACE("home " + std::to_string(dies) + " dies after " + std::to_string(moment));
      CopiedMortals members(5, 4, store_for_large_values());
      fill_with_large(members);
      auto leave = members.at(1).leave();
      members.world.run_for(moment);
      members.world.crash(dies);
      members.expect_all(4, "STO-C1");
      if (dies != 1) {
        const Status status = members.end_of(leave);
        EXPECT_TRUE(status == Status::ok || status == Status::lost) << remote::describe(status);
      }
      if (HasFailure()) return;
    }
}

TEST(StoreMoves, LeaveGoesOnWithoutItsCaller) {
  CopiedMortals members;
  members.fill(30);
  { auto leave = members.at(1).leave(); }
  EXPECT_TRUE(
      members.world.run_until([&] { return members.at(1).statistics().keys == 0; }, 1'000'000'000));
  EXPECT_EQ(members.leave(1), Status::ok);
  members.expect_all(5, "STO-M1");
}

TEST(StoreMoves, LeaveIsRefusedWhereItIsNotOffered) {
  CopiedMortals two(3, 2);
  two.fill(20);
  EXPECT_EQ(two.leave(0), Status::not_allowed) << "the other home would have the only copies";
  EXPECT_EQ(two.leave(2), Status::not_allowed) << "of a client";
  two.expect_all(2, "STO-M1");
  two.world.crash(1);
  two.expect_all(2, "STO-C1");
}

/// Fewer than two other homes are left, since one has died.
TEST(StoreMoves, LeaveIsRefusedAfterADeath) {
  CopiedMortals members(4, 3);
  members.fill(20);
  members.bury(2, {0, 1}, 3);
  EXPECT_EQ(members.leave(0), Status::not_allowed);
  members.expect_all(3, "STO-M1");
}

}  // namespace
}  // namespace dunlin

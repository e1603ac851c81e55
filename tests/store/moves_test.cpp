#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/sim_members.hpp"
#include "support/rounds.hpp"

/// Homes that leave on purpose, in a store with two copies of each key, while the keys are in use.
namespace dunlin {
namespace {

using remote::Status;
using test::CopiedMortals;
using test::name_of;
using test::two_copies;

/// At each of these moments, the next home to die has the only other copies of some keys.
TEST(StoreMoves, EachHomeMayDieAfterTheLeave) {
  for (const Rank dies : {Rank{0}, Rank{2}, Rank{3}, Rank{4}}) {
    SCOPED_TRACE("home " + std::to_string(dies) + " dies");
    CopiedMortals members;
    members.fill(40);
    EXPECT_EQ(remote::describe(members.leave(1)), "done");
    members.world.crash(dies);
    members.expect_gets(5);
    members.expect_gets(1);
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
    members.expect_gets(3, "STO-M1");
    members.world.crash(one_left ? other : one);
    members.expect_gets(3);
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
    members.expect_gets(4);
    for (int key = 0; key < 40; ++key)
      if (!members.expected.contains(name_of(key))) {
        EXPECT_EQ(members.get(4, name_of(key)), "-") << "an erased key came back";
      }
  }
}

TEST(StoreMoves, WithoutRoomAtAnotherHomeEndsAndGoesOnWithRoom) {
  StoreOptions options = test::tiny_store();
  options.copies = 2;
  CopiedMortals members(4, 3, options);
  members.fill_up(400, {0, 1, 2});
  EXPECT_EQ(members.leave(1), Status::no_room);
  members.expect_gets(0, "STO-M1");
  members.expect_gets(1, "STO-M1");
  int left = 0;
  const auto all = members.expected;
  for (const auto& [key, value] : all)
    if (++left > 20) members.erase(static_cast<Rank>(left % 3), key);
  EXPECT_EQ(remote::describe(members.leave(1)), "done") << "goes on with room";
  EXPECT_EQ(members.keys_at(1), 0U);
  members.expect_gets(0, "STO-M1");
  members.world.crash(2);
  members.expect_gets(3);
  for (const auto& [key, value] : all)
    if (!members.expected.contains(key)) {
      EXPECT_EQ(members.get(3, key), "-") << "an erased key came back";
    }
}

/// After a leave without room each key is at two homes. Where only the home that began to leave has
/// keys of a home that dies, and there is no room for them where they go to, they are lost.
TEST(StoreMoves, WithoutRoomADeathLosesNothing) {
  for (const Rank dies : {Rank{0}, Rank{1}, Rank{2}}) {
    StoreOptions options = test::tiny_store();
    options.copies = 2;
    CopiedMortals members(4, 3, options);
    members.fill_up(400, {3});
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
    members.put(0, name_of(key), members.expected[name_of(key)] = value);
  }
}

TEST(StoreMoves, LargeValuesMove) {
  CopiedMortals members(5, 4, store_for_large_values());
  fill_with_large(members);
  for (const Rank leaves : {Rank{1}, Rank{0}}) {
    EXPECT_EQ(remote::describe(members.leave(leaves)), "done");
    members.expect_gets(4, "STO-M1");
  }
  members.world.crash(2);
  members.expect_gets(4);
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
      members.expect_gets(4);
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
  EXPECT_TRUE(members.world.run_until([&] { return members.keys_at(1) == 0; }, 1'000'000'000));
  EXPECT_EQ(members.leave(1), Status::ok);
  members.expect_gets(5, "STO-M1");
}

TEST(StoreMoves, LeaveIsRefusedWhereItIsNotOffered) {
  CopiedMortals two(3, 2);
  two.fill(20);
  EXPECT_EQ(two.leave(0), Status::not_allowed) << "the other home would have the only copies";
  EXPECT_EQ(two.leave(2), Status::not_allowed) << "of a client";
  two.expect_gets(2, "STO-M1");
  two.world.crash(1);
  two.expect_gets(2);
}

/// Fewer than two other homes are left, since one has died.
TEST(StoreMoves, LeaveIsRefusedAfterADeath) {
  CopiedMortals members(4, 3);
  members.fill(20);
  members.world.crash(2);
  members.expect_restored(2, {0, 1, 3});
  EXPECT_EQ(members.leave(0), Status::not_allowed);
  members.expect_gets(3, "STO-M1");
}

}  // namespace
}  // namespace dunlin

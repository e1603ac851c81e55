#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/sim_members.hpp"

/// Members that join a store with two copies of each key later and take keys, while these are in
/// use.
namespace dunlin {
namespace {

using remote::Status;
using test::Joining;
using test::kFounders;
using test::kLate;
using test::name_of;
using test::two_copies;

/// The home with the most keys gives half of its positions, as the first home and as the second.
TEST(StoreMovesJoin, AMemberTakesBothRolesOfHalfThePositions) {
  Joining members(two_copies());
  members.fill(120);
  members.join(kLate);
  std::array<std::uint64_t, kFounders> before{};
  std::array<std::uint64_t, kFounders> first{};
  for (Rank rank = 0; rank < kFounders; ++rank) {
    before.at(rank) = members.keys_at(rank);
    first.at(rank) = members.first_at(rank, 0);
  }
  EXPECT_EQ(members.take_keys(kLate), Status::ok);
  const Rank gave = members.giver(kFounders - 1);
  EXPECT_EQ(before.at(gave), *std::ranges::max_element(before));
  for (Rank rank = 0; rank < kFounders; ++rank)
    if (rank != gave) {
      EXPECT_EQ(members.keys_at(rank), before.at(rank)) << "it gave none";
      EXPECT_EQ(members.first_at(rank, 0), first.at(rank)) << "it gave none";
    }
  EXPECT_EQ(members.keys_at(kLate) + members.keys_at(gave), before.at(gave));
  EXPECT_GT(members.keys_at(kLate), before.at(gave) / 4);
  EXPECT_GT(members.keys_at(gave), before.at(gave) / 4);
  for (const Rank by : {Rank{0}, Rank{2}, kLate})
    EXPECT_EQ(members.first_at(kLate, by) + members.first_at(gave, by), first.at(gave));
  EXPECT_GT(members.first_at(kLate, 0), 0U);
  EXPECT_GT(members.keys_at(kLate), members.first_at(kLate, 0)) << "second copies, too";
}

TEST(StoreMovesJoin, EachMemberMayDieAfterwards) {
  for (const Rank dies : {Rank{0}, Rank{1}, Rank{2}, kLate})
    for (int takes = 1; takes <= 2; ++takes) {
      SCOPED_TRACE("member " + std::to_string(dies) + " dies, after " + std::to_string(takes));
      Joining members(two_copies());
      members.fill(40);
      members.join(kLate);
      members.join(kLate + 1);
      for (int i = 0; i < takes; ++i) EXPECT_EQ(members.take_keys(kLate), Status::ok);
      members.world.crash(dies);
      for (const Rank by : {dies == 0 ? Rank{1} : Rank{0}, kLate + 1}) members.expect_gets(by);
      if (HasFailure()) return;
    }
}

TEST(StoreMovesJoin, AHomeThatHasGivenKeysLeaves) {
  for (Rank dies : {Rank{0}, Rank{1}, Rank{2}, kLate, kLate + 1}) {  // + 1: none
    Joining members(two_copies());
    members.fill(40);
    members.join(kLate);
    EXPECT_EQ(members.take_keys(kLate), Status::ok);
    const Rank gave = members.giver(2);
    EXPECT_EQ(remote::describe(members.leave(gave)), "done");
    EXPECT_EQ(members.keys_at(gave), 0U);
    for (Rank by = 0; by <= kLate; ++by) members.expect_all(by);
    if (dies <= kLate && dies != gave) members.world.crash(dies);
    const Rank by = dies == 0 ? 1 : 0;
    members.expect_gets(by);
    members.member(gave).group->leave();
    members.join(kLate + 1);
    members.expect_gets(kLate + 1);
    if (HasFailure()) return;
  }
}

TEST(StoreMovesJoin, IndexesGrowAfterwards) {
  Joining members(two_copies());
  members.fill(20);
  members.join(kLate);
  EXPECT_EQ(members.take_keys(kLate), Status::ok);
  const std::uint64_t late_splits = members.at(kLate).counters().at("splits");
  for (int key = 20; key < 300; ++key)
    members.put(static_cast<Rank>(key % 4), name_of(key), members.expected[name_of(key)] = "later");
  members.world.run_for(30'000'000);
  EXPECT_GT(members.at(kLate).counters().at("splits"), late_splits) << "STO-10";
  for (Rank by = 0; by <= kLate; ++by) members.expect_all(by);
  members.world.crash(kLate);
  members.expect_gets(1);
}

TEST(StoreMovesJoin, WithoutRoomNothingIsLostAndItGoesOn) {
  StoreOptions options = two_copies();
  options.cache_bytes = 0;  // all of them look for the chains
  Joining members(options, 1);
  for (int key = 0; key < 100; ++key)
    members.put(0, name_of(key),
                members.expected[name_of(key)] = std::string(8'000, 'v') + name_of(key));
  members.options.limit_bytes = 5 << 16;  // has room for 35 of its 37, in slabs of two members
  members.join(kLate);
  EXPECT_EQ(members.take_keys(kLate), Status::no_room);
  for (const Rank by : {Rank{1}, kLate})
    for (const auto& [key, value] : members.expected) EXPECT_EQ(members.get(by, key), value);
  EXPECT_EQ(members.scanned(2), members.expected);
  const auto all = members.expected;
  for (const auto& [key, value] : all)
    if (key.back() != '7') members.erase(0, key);
  EXPECT_EQ(remote::describe(members.take_keys(kLate)), "done") << "it goes on";
  members.expect_all(1);
  members.world.crash(kLate);
  members.expect_gets(1);
}

/// A member that contributes counts as a home to which keys can move.
TEST(StoreMovesJoin, AMemberWithoutKeysTakesThoseOfAHomeThatLeaves) {
  Joining members(two_copies(2));  // the third founder is a client
  members.fill(30);
  EXPECT_EQ(members.leave(0), Status::not_allowed);
  members.join(kLate);
  EXPECT_EQ(remote::describe(members.leave(0)), "done");
  EXPECT_EQ(members.keys_at(0), 0U);
  EXPECT_EQ(members.keys_at(kLate), 30U);
  for (Rank by = 0; by <= kLate; ++by) members.expect_all(by);
  members.world.crash(1);
  members.expect_gets(2);
}

TEST(StoreMovesJoin, AMemberWithoutKeysLeavesAtOnce) {
  Joining members(two_copies());
  members.fill(20);
  members.join(kLate);
  EXPECT_EQ(remote::describe(members.leave(kLate)), "done");
  EXPECT_EQ(members.take_keys(kLate), Status::not_allowed);
  EXPECT_EQ(remote::describe(members.leave(1)), "done");
  EXPECT_EQ(members.keys_at(kLate), 0U);
  members.expect_all(2);
}

}  // namespace
}  // namespace dunlin

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/two_copies.hpp"

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

struct CopiedJoining : Joining {
  explicit CopiedJoining(const StoreOptions& its_options = two_copies(), std::uint32_t others = 2)
      : Joining(its_options, others) {}
  void expect_complete(const std::vector<Rank>& homes) {
    const auto is_complete = [&] {
      return std::ranges::all_of(
          homes, [&](Rank rank) { return at(rank).store.statistics().copies_complete; });
    };
    EXPECT_TRUE(world.run_until(is_complete, 10'000'000'000)) << "STO-C4: copies are not made";
  }
  void expect_local_once(const std::vector<Rank>& homes) {
    test::expect_local_once(expected, homes, [&](Rank rank) -> Store& { return at(rank).store; });
  }
  [[nodiscard]] int first_at(Rank home, Rank by) {
    return static_cast<int>(std::ranges::count_if(
        expected, [&](const auto& one) { return at(by).store.home_of(one.first) == home; }));
  }
  void expect_gets(Rank by) {
    for (const auto& [key, value] : expected) EXPECT_EQ(get(by, key), value) << "STO-C1: " << key;
    EXPECT_EQ(scanned(by), expected) << "STO-C1";
  }
};

TEST(StoreMovesJoin, AMemberTakesHalfOfEachHomesKeysInTurn) {
  CopiedJoining members;
  members.fill(60);
  members.join(kLate);
  for (Rank by = 0; by <= kLate; ++by) members.expect_all(by);  // the locations are cached
  std::uint64_t before = 0;
  for (std::uint32_t call = 0; call + 1 < kFounders; ++call) {
    EXPECT_EQ(remote::describe(members.take_keys(kLate)), "done");
    EXPECT_GT(members.keys_at(kLate), before);
    before = members.keys_at(kLate);
    members.expect_complete({0, 1, 2, kLate});
    for (Rank by = 0; by <= kLate; ++by) members.expect_all(by);
    members.expect_local_once({0, 1, 2, kLate});
    for (int key = 0; key < 60; key += 7)
      members.put(1, name_of(key),
                  members.expected[name_of(key)] = "after " + std::to_string(call));
    if (HasFailure()) return;
  }
  const int there = members.first_at(kLate, 1);
  EXPECT_GT(there, 15);
  EXPECT_LT(there, 45);
  EXPECT_EQ(members.take_keys(kLate), Status::not_allowed) << "STO-M7: each home gives once";
  members.join(kLate + 1);  // it learns of the moves
  members.expect_all(kLate + 1);
}

/// The home with the most keys gives half of its positions, as the first home and as the second.
TEST(StoreMovesJoin, AMemberTakesBothRolesOfHalfThePositions) {
  CopiedJoining members;
  members.fill(120);
  members.join(kLate);
  std::array<std::uint64_t, kFounders> before{};
  std::array<int, kFounders> first{};
  for (Rank rank = 0; rank < kFounders; ++rank) {
    before.at(rank) = members.keys_at(rank);
    first.at(rank) = members.first_at(rank, 0);
  }
  EXPECT_EQ(members.take_keys(kLate), Status::ok);
  Rank gave = 0;
  while (gave < kFounders - 1 && members.at(gave).store.counters().at("keys_moved") == 0) ++gave;
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
  EXPECT_GT(members.first_at(kLate, 0), 0);
  EXPECT_GT(members.keys_at(kLate), static_cast<std::uint64_t>(members.first_at(kLate, 0)))
      << "second copies, too";
}

TEST(StoreMovesJoin, EachMemberMayDieAfterwards) {
  for (const Rank dies : {Rank{0}, Rank{1}, Rank{2}, kLate})
    for (int takes = 1; takes <= 2; ++takes) {
      SCOPED_TRACE("member " + std::to_string(dies) + " dies, after " + std::to_string(takes));
      CopiedJoining members;
      members.fill(40);
      members.join(kLate);
      members.join(kLate + 1);
      for (int i = 0; i < takes; ++i) EXPECT_EQ(members.take_keys(kLate), Status::ok);
      members.world.crash(dies);
      for (const Rank by : {dies == 0 ? Rank{1} : Rank{0}, kLate + 1}) members.expect_gets(by);
      if (HasFailure()) return;
    }
}

TEST(StoreMovesJoin, TheMemberLeavesAgainAndSoDoesAHome) {
  CopiedJoining members;
  members.fill(40);
  members.join(kLate);
  members.join(kLate + 1);  // contributes, and has no keys
  EXPECT_EQ(members.take_keys(kLate), Status::ok);
  EXPECT_EQ(remote::describe(members.leave(kLate)), "done") << "STO-M8";
  EXPECT_EQ(members.keys_at(kLate), 0U);
  members.expect_all(kLate);
  EXPECT_EQ(members.take_keys(kLate), Status::not_allowed) << "it has left";
  members.at(kLate).group->leave();
  members.until_gone(kLate);
  members.expect_all(2);
  // The rest of the home follows what it has given.
  Rank gave = 0;
  while (gave < 2 && members.at(gave).store.counters().at("keys_moved") == 0) ++gave;
  EXPECT_EQ(remote::describe(members.leave(gave)), "done");
  EXPECT_EQ(members.keys_at(gave), 0U);
  const Rank by = gave == 0 ? 1 : 0;
  members.at(gave).group->leave();
  members.until_gone(gave, by);
  members.expect_all(by);
  members.expect_all(kLate + 1);
  std::vector<Rank> homes;
  for (Rank rank = 0; rank <= kLate + 1; ++rank)
    if (rank != gave && rank != kLate) homes.push_back(rank);
  members.expect_complete(homes);
  members.expect_local_once(homes);
  members.world.crash(gave == 2 ? 1 : 2);
  members.expect_gets(by);
}

TEST(StoreMovesJoin, AHomeThatHasGivenKeysLeaves) {
  for (Rank dies : {Rank{0}, Rank{1}, Rank{2}, kLate, kLate + 1}) {  // + 1: none
    CopiedJoining members;
    members.fill(40);
    members.join(kLate);
    EXPECT_EQ(members.take_keys(kLate), Status::ok);
    Rank gave = 0;
    while (gave < 2 && members.at(gave).store.counters().at("keys_moved") == 0) ++gave;
    EXPECT_EQ(remote::describe(members.leave(gave)), "done");
    EXPECT_EQ(members.keys_at(gave), 0U);
    for (Rank by = 0; by <= kLate; ++by) members.expect_all(by);
    if (dies <= kLate && dies != gave) members.world.crash(dies);
    const Rank by = dies == 0 ? 1 : 0;
    members.expect_gets(by);
    members.at(gave).group->leave();
    members.join(kLate + 1);
    members.expect_gets(kLate + 1);
    if (HasFailure()) return;
  }
}

TEST(StoreMovesJoin, LeaveWaitsForKeysThatAreBeingTaken) {
  CopiedJoining members;
  members.fill(40);
  members.join(kLate);
  auto take = members.at(kLate).store.take_keys();
  members.world.run_until([&] { return members.keys_at(kLate) > 0; }, 1'000'000'000);
  Rank gives = 0;
  while (gives < 2 && members.at(gives).store.counters().at("keys_moved") == 0) ++gives;
  auto leave = members.at(gives).store.leave();
  EXPECT_EQ(remote::describe(members.end_of(take)), "done");
  EXPECT_EQ(remote::describe(members.end_of(leave)), "done");
  EXPECT_EQ(members.keys_at(gives), 0U);
  EXPECT_GT(members.keys_at(kLate), 0U);
  for (Rank by = 0; by <= kLate; ++by) members.expect_all(by);
}

TEST(StoreMovesJoin, TwoMembersAskAtOnce) {
  CopiedJoining members;
  members.fill(60);
  members.join(kLate);
  members.join(kLate + 1);
  auto one = members.at(kLate).store.take_keys();
  auto other = members.at(kLate + 1).store.take_keys();
  EXPECT_EQ(remote::describe(members.end_of(one)), "done");
  EXPECT_EQ(remote::describe(members.end_of(other)), "done");
  EXPECT_GT(members.keys_at(kLate), 0U);
  EXPECT_GT(members.keys_at(kLate + 1), 0U);
  for (Rank by = 0; by <= kLate + 1; ++by) members.expect_all(by);
  EXPECT_EQ(remote::describe(members.leave(kLate)), "done");
  for (Rank by = 0; by <= kLate + 1; ++by) members.expect_all(by);
  members.world.crash(kLate + 1);
  members.expect_gets(0);
}

TEST(StoreMovesJoin, GoesOnWithoutItsCaller) {
  CopiedJoining members;
  members.fill(30);
  members.join(kLate);
  { auto take = members.at(kLate).store.take_keys(); }
  EXPECT_TRUE(members.world.run_until([&] { return members.keys_at(kLate) > 0; }, 1'000'000'000));
  EXPECT_EQ(members.take_keys(kLate), Status::ok);
  members.expect_all(1);
}

TEST(StoreMovesJoin, IndexesGrowAfterwards) {
  CopiedJoining members;
  members.fill(20);
  members.join(kLate);
  EXPECT_EQ(members.take_keys(kLate), Status::ok);
  const std::uint64_t late_splits = members.at(kLate).store.counters().at("splits");
  for (int key = 20; key < 300; ++key)
    members.put(static_cast<Rank>(key % 4), name_of(key), members.expected[name_of(key)] = "later");
  members.world.run_for(30'000'000);
  EXPECT_GT(members.at(kLate).store.counters().at("splits"), late_splits) << "STO-10";
  for (Rank by = 0; by <= kLate; ++by) members.expect_all(by);
  members.world.crash(kLate);
  members.expect_gets(1);
}

TEST(StoreMovesJoin, VersionsAndTimesToLiveMove) {
  for (const Rank dies : {Rank{0}, kLate, kLate + 1}) {  // + 1: none
    CopiedJoining members;
    std::map<std::string, std::uint64_t> versions;
    for (int key = 0; key < 24; ++key) {
      auto put = members.at(1).store.put(name_of(key), "value", 900'000'000);
      EXPECT_EQ(members.end_of(put), Status::ok);
      versions[name_of(key)] = put.version();
    }
    for (int key = 0; key < 24; key += 2) {
      auto erase = members.at(2).store.erase(name_of(key));
      EXPECT_EQ(members.end_of(erase), Status::ok);
    }
    members.join(kLate);
    EXPECT_EQ(members.take_keys(kLate), Status::ok);
    EXPECT_EQ(members.take_keys(kLate), Status::ok);
    if (dies <= kLate) members.world.crash(dies);
    for (int key = 0; key < 24; key += 2) {
      EXPECT_EQ(members.get(2, name_of(key)), "-") << "an erased key came back";
      auto put = members.at(1).store.put(name_of(key), "again");
      EXPECT_EQ(members.end_of(put), Status::ok);
      EXPECT_GT(put.version(), versions[name_of(key)]) << "STO-M3";
    }
    for (int key = 1; key < 24; key += 2) EXPECT_EQ(members.get(2, name_of(key)), "value");
    members.world.run_for(1'000'000'000);
    for (int key = 0; key < 24; ++key)
      EXPECT_EQ(members.get(2, name_of(key)), key % 2 == 0 ? "again" : "-");
  }
}

TEST(StoreMovesJoin, WithoutRoomNothingIsLostAndItGoesOn) {
  StoreOptions options = two_copies();
  options.cache_bytes = 0;  // all of them look for the chains
  CopiedJoining members(options, 1);
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
    if (key.back() != '7') {
      auto erase = members.at(0).store.erase(key);
      EXPECT_EQ(remote::describe(members.end_of(erase)), "done");
      members.expected.erase(key);
    }
  EXPECT_EQ(remote::describe(members.take_keys(kLate)), "done") << "it goes on";
  members.expect_all(1);
  members.world.crash(kLate);
  members.expect_gets(1);
}

TEST(StoreMovesJoin, IsRefusedWhereItIsNotOffered) {
  CopiedJoining members;
  EXPECT_EQ(members.take_keys(1), Status::not_allowed) << "a home";
  members.options.contributes = false;
  members.join(kLate);
  EXPECT_EQ(members.take_keys(kLate), Status::not_allowed) << "a client";
}

/// A member that contributes counts as a home to which keys can move.
TEST(StoreMovesJoin, AMemberWithoutKeysTakesThoseOfAHomeThatLeaves) {
  CopiedJoining members(two_copies(2));  // the third founder is a client
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
  CopiedJoining members;
  members.fill(20);
  members.join(kLate);
  EXPECT_EQ(remote::describe(members.leave(kLate)), "done");
  EXPECT_EQ(members.take_keys(kLate), Status::not_allowed);
  EXPECT_EQ(remote::describe(members.leave(1)), "done");
  EXPECT_EQ(members.keys_at(kLate), 0U);
  members.expect_all(2);
}

TEST(StoreMovesJoin, AScanReturnsEachKeyOnceWhileTheyMove) {
  for (std::uint64_t pause = 1'000; pause < 60'000; pause += 6'000) {
    CopiedJoining members;
    members.fill(60);
    members.join(kLate);
    auto take = members.at(kLate).store.take_keys();
    for (int scan = 0; !take.finished(); ++scan) {
      ASSERT_LT(scan, 1'000) << "hangs";
      EXPECT_EQ(members.scanned(2, pause), members.expected) << "STO-M2: pause " << pause;
    }
    EXPECT_EQ(remote::describe(take.status()), "done");
    EXPECT_EQ(members.scanned(kLate, pause), members.expected) << "STO-M2: pause " << pause;
  }
}

/// Transactions conflict with the move of their keys, and find them then.
TEST(StoreMovesJoin, TransactionsGoOn) {
  constexpr int kMany = 12;
  CopiedJoining members;
  for (int key = 0; key < kMany; ++key) members.put(0, name_of(key), "100");
  members.join(kLate);
  const auto transfer = [&](Rank by, int from, int to) {
    Status status = Status::conflict;
    for (int tries = 0; tries < 200 && status == Status::conflict; ++tries) {
      StoreTransaction moves(members.at(by).store);
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
  for (int call = 0; call < 2; ++call) {
    auto take = members.at(kLate).store.take_keys();
    for (int round = 0; round < 30 || !take.finished(); ++round) {
      transfer(round % 2 == 0 ? 2 : kLate, round % kMany, (round * 5 + 1) % kMany);
      ASSERT_LT(round, 10'000) << "hangs";
    }
    EXPECT_EQ(remote::describe(take.status()), "done");
  }
  members.world.crash(kLate);
  int sum = 0;
  for (int key = 0; key < kMany; ++key) sum += std::stoi(members.get(0, name_of(key)));
  EXPECT_EQ(sum, kMany * 100) << "STO-7";
}

/// The home that would be asked dies while the member looks at the others.
TEST(StoreMovesJoin, AHomeMayDieBeforeItIsAsked) {
  for (Rank dies = 0; dies < kFounders; ++dies)
    for (std::uint64_t moment = 0; moment < 40'000; moment += 4'000) {
      SCOPED_TRACE("home " + std::to_string(dies) + " dies after " + std::to_string(moment));
      CopiedJoining members;
      members.fill(20);
      members.join(kLate);
      auto take = members.at(kLate).store.take_keys();
      members.world.run_for(moment);
      members.world.crash(dies);
      const Status status = members.end_of(take);
      EXPECT_TRUE(status == Status::ok || status == Status::lost) << remote::describe(status);
      members.expect_gets(kLate);
      if (testing::Test::HasFailure()) return;
    }
}

}  // namespace
}  // namespace dunlin

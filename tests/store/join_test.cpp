#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/joining.hpp"

/// Members that join later and take keys, while these are in use.
namespace dunlin {
namespace {

using remote::Status;
using test::Joining;
using test::kFounders;
using test::kLate;
using test::name_of;
using test::roomy_store;

TEST(StoreJoin, AMemberTakesHalfOfEachHomesKeysInTurn) {
  Joining members;
  members.fill(60);
  members.join(kLate);
  for (Rank by = 0; by <= kLate; ++by) members.expect_all(by);  // the locations are cached
  std::uint64_t before = 0;
  for (std::uint32_t call = 0; call < kFounders; ++call) {
    EXPECT_EQ(members.take_keys(kLate), Status::ok);
    EXPECT_GT(members.keys_at(kLate), before);
    before = members.keys_at(kLate);
    for (Rank by = 0; by <= kLate; ++by) members.expect_all(by);
    for (int key = 0; key < 60; key += 7)
      members.put(1, name_of(key),
                  members.expected[name_of(key)] = "after " + std::to_string(call));
  }
  int there = 0;
  for (int key = 0; key < 60; ++key)
    there += members.at(1).store.home_of(name_of(key)) == kLate ? 1 : 0;
  EXPECT_EQ(static_cast<std::uint64_t>(there), before);
  EXPECT_GT(there, 15);
  EXPECT_LT(there, 45);
  EXPECT_EQ(members.take_keys(kLate), Status::not_allowed) << "STO-M7: each home gives once";
  members.join(kLate + 1);  // it learns of the moves
  members.expect_all(kLate + 1);
}

TEST(StoreJoin, TheMemberLeavesAgainAndSoDoTheHomes) {
  Joining members(roomy_store(2));  // the third founder is a client, without memory
  members.fill(40);
  members.join(kLate);
  EXPECT_EQ(members.take_keys(kLate), Status::ok);
  EXPECT_EQ(members.keys_at(2), 0U);
  EXPECT_EQ(members.leave(kLate), Status::ok) << "STO-M8";
  EXPECT_EQ(members.keys_at(kLate), 0U);
  members.expect_all(kLate);
  EXPECT_EQ(members.take_keys(kLate), Status::not_allowed) << "it has left";
  members.at(kLate).group->leave();
  members.until_gone(kLate);
  members.expect_all(2);
  // The rest of the home follows what it has given.
  const Rank gave = members.at(0).store.counters().at("keys_moved") > 0 ? 0 : 1;
  EXPECT_EQ(members.leave(gave), Status::ok);
  EXPECT_EQ(members.keys_at(gave), 0U);
  members.at(gave).group->leave();
  members.until_gone(gave, 2);
  members.expect_all(2);
  members.join(kLate + 1);  // has met neither
  members.expect_all(kLate + 1);
}

TEST(StoreJoin, AHomeThatHasGivenKeysMovesTheRestToTheSameMember) {
  Joining members(roomy_store(1));
  members.fill(40);
  members.join(kLate);
  EXPECT_EQ(members.take_keys(kLate), Status::ok);
  const std::uint64_t given = members.keys_at(kLate);
  EXPECT_GT(given, 8U);
  EXPECT_EQ(members.keys_at(0), 40 - given);
  EXPECT_EQ(members.leave(0), Status::ok);
  EXPECT_EQ(members.keys_at(kLate), 40U);
  members.at(0).group->leave();
  members.until_gone(0, 1);
  members.expect_all(1);
  members.join(kLate + 1);
  members.expect_all(kLate + 1);  // STO-M6: the home is gone
}

TEST(StoreJoin, LeaveWaitsForKeysThatAreBeingTaken) {
  Joining members(roomy_store(1));
  members.fill(40);
  members.join(kLate);
  auto take = members.at(kLate).store.take_keys();
  members.world.run_until([&] { return members.keys_at(kLate) > 0; }, 1'000'000'000);
  auto leave = members.at(0).store.leave();
  EXPECT_EQ(members.end_of(take), Status::ok);
  EXPECT_EQ(members.end_of(leave), Status::ok);
  EXPECT_EQ(members.keys_at(kLate), 40U);
  for (Rank by = 0; by <= kLate; ++by) members.expect_all(by);
}

TEST(StoreJoin, TwoMembersAskAtOnce) {
  Joining members;
  members.fill(60);
  members.join(kLate);
  members.join(kLate + 1);
  auto one = members.at(kLate).store.take_keys();
  auto other = members.at(kLate + 1).store.take_keys();
  EXPECT_EQ(members.end_of(one), Status::ok);
  EXPECT_EQ(members.end_of(other), Status::ok);
  EXPECT_GT(members.keys_at(kLate), 0U);
  EXPECT_GT(members.keys_at(kLate + 1), 0U);
  for (Rank by = 0; by <= kLate + 1; ++by) members.expect_all(by);
  EXPECT_EQ(members.leave(kLate), Status::ok);
  for (Rank by = 0; by <= kLate + 1; ++by) members.expect_all(by);
}

TEST(StoreJoin, GoesOnWithoutItsCaller) {
  Joining members;
  members.fill(30);
  members.join(kLate);
  { auto take = members.at(kLate).store.take_keys(); }
  EXPECT_TRUE(members.world.run_until([&] { return members.keys_at(kLate) > 0; }, 1'000'000'000));
  EXPECT_EQ(members.take_keys(kLate), Status::ok);
  members.expect_all(1);
}

TEST(StoreJoin, IndexesGrowAfterwards) {
  Joining members(roomy_store(1));
  members.fill(20);
  members.join(kLate);
  EXPECT_EQ(members.take_keys(kLate), Status::ok);
  const std::uint64_t splits = members.at(0).store.counters().at("splits");
  const std::uint64_t late_splits = members.at(kLate).store.counters().at("splits");
  for (int key = 20; key < 300; ++key)
    members.put(static_cast<Rank>(key % 4), name_of(key), members.expected[name_of(key)] = "later");
  members.world.run_for(30'000'000);
  EXPECT_GT(members.at(0).store.counters().at("splits"), splits + 4) << "STO-10";
  EXPECT_GT(members.at(kLate).store.counters().at("splits"), late_splits + 4) << "STO-10";
  for (Rank by = 0; by <= kLate; ++by) members.expect_all(by);
  EXPECT_EQ(members.leave(kLate), Status::not_allowed) << "no other home is left";
  members.join(kLate + 1);
  members.expect_all(kLate + 1);
  EXPECT_EQ(members.leave(kLate), Status::ok);
  for (const Rank by : {Rank{0}, Rank{2}, kLate, kLate + 1}) members.expect_all(by);
}

TEST(StoreJoin, VersionsAndTimesToLiveMove) {
  Joining members(roomy_store(1));
  std::map<std::string, std::uint64_t> versions;
  for (int key = 0; key < 12; ++key) {
    auto put = members.at(1).store.put(name_of(key), "value", 200'000'000);
    EXPECT_EQ(members.end_of(put), Status::ok);
    versions[name_of(key)] = put.version();
  }
  for (int key = 0; key < 12; key += 2) {
    auto erase = members.at(2).store.erase(name_of(key));
    EXPECT_EQ(members.end_of(erase), Status::ok);
  }
  members.join(kLate);
  EXPECT_EQ(members.take_keys(kLate), Status::ok);
  for (int key = 0; key < 12; key += 2) {
    auto put = members.at(1).store.put(name_of(key), "again");
    EXPECT_EQ(members.end_of(put), Status::ok);
    EXPECT_GT(put.version(), versions[name_of(key)]) << "STO-M3";
  }
  for (int key = 1; key < 12; key += 2) EXPECT_EQ(members.get(kLate, name_of(key)), "value");
  members.world.run_for(300'000'000);
  for (int key = 0; key < 12; ++key)
    EXPECT_EQ(members.get(kLate, name_of(key)), key % 2 == 0 ? "again" : "-");
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
  for (const Rank by : {Rank{1}, Rank{2}})
    for (const auto& [key, value] : members.expected) EXPECT_EQ(members.get(by, key), value);
  EXPECT_EQ(members.take_keys(kLate), Status::no_room);
  // By locations of the home's memory, of which there is more.
  for (const auto& [key, value] : members.expected) EXPECT_EQ(members.get(1, key), value) << key;
  // The index of the home grows, and the other member has not been told of the chains that moved.
  const std::uint64_t splits = members.at(0).store.counters().at("splits");
  for (int key = 300; key < 900; ++key) {
    auto put = members.at(0).store.put(name_of(key), "small");
    if (members.end_of(put) == Status::ok) members.expected[name_of(key)] = "small";
  }
  members.world.run_for(30'000'000);
  EXPECT_GT(members.at(0).store.counters().at("splits"), splits);
  for (const auto& [key, value] : members.expected)
    EXPECT_EQ(members.get(2, key), value) << "STO-M1: " << key;
  EXPECT_EQ(members.scanned(2), members.expected);
  for (auto& [key, value] : members.expected)
    if (key.back() != '7') {
      auto erase = members.at(0).store.erase(key);
      EXPECT_EQ(members.end_of(erase), Status::ok);
      value.clear();
    }
  std::erase_if(members.expected, [](const auto& one) { return one.second.empty(); });
  EXPECT_EQ(members.take_keys(kLate), Status::ok) << "it goes on with the same home";
  members.expect_all(1);
}

TEST(StoreJoin, IsRefusedWhereItIsNotOffered) {
  Joining members;
  EXPECT_EQ(members.take_keys(1), Status::not_allowed) << "a home";
  members.options.contributes = false;
  members.join(kLate);
  EXPECT_EQ(members.take_keys(kLate), Status::not_allowed) << "a client";
  StoreOptions lru = roomy_store();
  lru.eviction = Eviction::lru;
  Joining evicting(lru);
  evicting.join(kLate);
  EXPECT_EQ(evicting.take_keys(kLate), Status::not_allowed);
}

TEST(StoreJoin, AScanReturnsEachKeyOnceWhileTheyMove) {
  for (std::uint64_t pause = 1'000; pause < 60'000; pause += 6'000) {
    Joining members;
    members.fill(60);
    members.join(kLate);
    auto take = members.at(kLate).store.take_keys();
    EXPECT_EQ(members.scanned(2, pause), members.expected) << "STO-M2: pause " << pause;
    EXPECT_EQ(members.end_of(take), Status::ok);
  }
}

/// Transactions conflict with the move of their keys, and find them then.
TEST(StoreJoin, TransactionsGoOn) {
  constexpr int kMany = 12;
  Joining members;
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
  for (int call = 0; call < 3; ++call) {
    auto take = members.at(kLate).store.take_keys();
    for (int round = 0; round < 40; ++round)
      transfer(round % 2 == 0 ? 2 : kLate, round % kMany, (round * 5 + 1) % kMany);
    EXPECT_EQ(members.end_of(take), Status::ok);
  }
  int sum = 0;
  for (int key = 0; key < kMany; ++key) sum += std::stoi(members.get(0, name_of(key)));
  EXPECT_EQ(sum, kMany * 100);
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
      auto take = members.at(kLate).store.take_keys();
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
          auto get = members.at(by).store.get(key);
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

/// The home that would be asked dies while the member looks at the others.
TEST(StoreJoin, AHomeMayDieBeforeItIsAsked) {
  for (Rank dies = 0; dies < kFounders; ++dies)
    for (std::uint64_t moment = 0; moment < 40'000; moment += 2'000) {
      Joining members;
      members.fill(20);
      members.join(kLate);
      auto take = members.at(kLate).store.take_keys();
      members.world.run_for(moment);
      members.world.crash(dies);
      const Status status = members.end_of(take);
      EXPECT_TRUE(status == Status::ok || status == Status::lost) << remote::describe(status);
      if (testing::Test::HasFailure()) return;
    }
}

}  // namespace
}  // namespace dunlin

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/mortals.hpp"
#include "store/stores.hpp"

/// Homes that leave on purpose, while their keys are in use.
namespace dunlin {
namespace {

using remote::Status;
using test::Mortals;

StoreOptions roomy_store() {
  StoreOptions options = test::small_store();
  options.expected_keys = 8;
  return options;
}
std::string name_of(int key) { return "key " + std::to_string(key); }

std::map<std::string, std::string> filled(Mortals& mortals, int many) {
  std::map<std::string, std::string> expected;
  for (int key = 0; key < many; ++key) {
    expected[name_of(key)] = std::string(static_cast<std::size_t>(key) * 20, 'v') + name_of(key);
    mortals.put(0, name_of(key), expected[name_of(key)]);
  }
  return expected;
}

void expect_all(Mortals& mortals, Rank by, const std::map<std::string, std::string>& expected) {
  for (const auto& [key, value] : expected)
    EXPECT_EQ(mortals.get(by, key), value) << "STO-M1: " << key;
  EXPECT_EQ(mortals.scanned(by), expected) << "STO-M1";
}

TEST(StoreLeave, OneHomeAfterTheOtherLeavesAndNoKeyIsLost) {
  Mortals mortals(4, 4, Mortals::network(), roomy_store());
  auto expected = filled(mortals, 60);
  for (const Rank leaves : {Rank{2}, Rank{3}, Rank{0}}) {
    expect_all(mortals, 1, expected);  // the locations are cached
    auto leave = mortals.at(leaves).leave();
    EXPECT_EQ(mortals.end_of(leave), Status::ok);
    EXPECT_GT(mortals.at(leaves).counters().at("keys_moved"), 0U);
    EXPECT_EQ(mortals.at(leaves).statistics().keys, 0U);
    EXPECT_EQ(mortals.at(leaves).statistics().value_bytes, 0U);
    for (const Rank by : {Rank{1}, leaves}) expect_all(mortals, by, expected);  // also as a client
    for (int key = 0; key < 60; key += 7) {
      EXPECT_NE(mortals.at(1).home_of(name_of(key)), leaves);
      mortals.put(1, name_of(key), expected[name_of(key)] = "after " + std::to_string(leaves));
    }
    auto count = mortals.at(1).count();
    EXPECT_EQ(mortals.end_of(count), Status::ok);
    EXPECT_EQ(count.keys(), expected.size());
    mortals.nodes[leaves].group->leave();
    EXPECT_TRUE(mortals.world.run_until(
        [&] { return !mortals.nodes[1].progress->contains(leaves); }, 1'000'000'000));
    expect_all(mortals, 1, expected);
  }
  auto leave = mortals.at(1).leave();
  EXPECT_EQ(mortals.end_of(leave), Status::not_allowed) << "no home is left";
  expect_all(mortals, 1, expected);
}

TEST(StoreLeave, TwoHomesThatLeaveAtOnceLeaveOneAfterTheOther) {
  for (const auto& [one, other] : {std::pair{Rank{0}, Rank{1}}, {Rank{2}, Rank{0}}}) {
    Mortals mortals(4, 3, Mortals::network(), roomy_store());
    const auto expected = filled(mortals, 40);
    auto first = mortals.at(one).leave();
    auto second = mortals.at(other).leave();
    EXPECT_EQ(mortals.end_of(first), Status::ok);
    EXPECT_EQ(mortals.end_of(second), Status::ok);
    expect_all(mortals, 3, expected);
  }
}

TEST(StoreLeave, AVersionIsNeverGivenAgain) {
  Mortals mortals(3, 3, Mortals::network(), roomy_store());
  std::string key = "key";
  while (mortals.at(0).home_of(key) != 1) key += "y";
  std::uint64_t last = 0;
  for (int round = 0; round < 10; ++round) {
    auto put = mortals.at(0).put(key, std::to_string(round));
    mortals.end_of(put);
    last = put.version();
    auto erase = mortals.at(2).erase(key);
    mortals.end_of(erase);
  }
  auto leave = mortals.at(1).leave();
  EXPECT_EQ(mortals.end_of(leave), Status::ok);
  auto put = mortals.at(0).put(key, "again");
  EXPECT_EQ(mortals.end_of(put), Status::ok);
  EXPECT_GT(put.version(), last) << "STO-M3";
}

TEST(StoreLeave, TimesToLiveMove) {
  Mortals mortals(2, 2, Mortals::network(), roomy_store());
  std::string key = "key";
  while (mortals.at(0).home_of(key) != 1) key += "y";
  auto put = mortals.at(0).put(key, "value", 50'000'000);
  EXPECT_EQ(mortals.end_of(put), Status::ok);
  auto leave = mortals.at(1).leave();
  EXPECT_EQ(mortals.end_of(leave), Status::ok);
  EXPECT_EQ(mortals.get(1, key), "value");
  mortals.world.run_for(70'000'000);
  EXPECT_EQ(mortals.get(1, key), "-");
}

/// STO-M5, at any moment: what a dead home had is lost or, if it has moved, still there.
TEST(StoreLeave, ADeathAmidAMoveLosesOnlyWhatTheDeadHomeHas) {
  std::uint64_t moved = 0, lost = 0;
  for (const Rank dies : {Rank{1}, Rank{2}, Rank{3}})  // that leaves, that gets the keys, a client
    for (std::uint64_t moment = 0; moment < 1'500'000; moment += 60'000) {
      SCOPED_TRACE("member " + std::to_string(dies) + " dies after " + std::to_string(moment));
      Mortals mortals(4, 3, Mortals::network(), roomy_store());
      const auto expected = filled(mortals, 30);
      std::map<std::string, Rank> homes;
      for (const auto& [key, value] : expected) homes[key] = mortals.at(0).home_of(key);
      auto leave = mortals.at(1).leave();
      mortals.world.run_for(moment);
      mortals.world.crash(dies);
      if (dies != 1) {
        const Status status = mortals.end_of(leave);
        EXPECT_TRUE(status == Status::ok || (dies == 2 && status == Status::lost));
      }
      for (const auto& [key, value] : expected) {
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

/// Transactions conflict with the move of their keys, and find them then.
TEST(StoreLeave, TransactionsGoOn) {
  constexpr int kMany = 12;
  Mortals mortals(4, 3, Mortals::network(), roomy_store());
  for (int key = 0; key < kMany; ++key) mortals.put(0, name_of(key), "100");
  const auto transfer = [&](int from, int to) {
    Status status = Status::conflict;
    for (int tries = 0; tries < 200 && status == Status::conflict; ++tries) {
      StoreTransaction moves(mortals.at(3));
      const auto read = [&](int key) {
        StoreOperation& get = moves.get(name_of(key));
        mortals.end_of(get);
        return std::stoi(std::string(get.text()));
      };
      const int has = read(from), other = read(to);
      moves.put(name_of(from), std::to_string(has - 1));
      moves.put(name_of(to), std::to_string(other + 1));
      status = mortals.end_of(moves.commit());
    }
    EXPECT_EQ(remote::describe(status), "done") << "STO-M1";
  };
  for (const Rank leaves : {Rank{1}, Rank{2}}) {
    auto leave = mortals.at(leaves).leave();
    for (int round = 0; round < 60; ++round) transfer(round % kMany, (round * 5 + 1) % kMany);
    EXPECT_EQ(mortals.end_of(leave), Status::ok);
    for (int round = 0; round < 20; ++round) transfer(round % kMany, (round * 7 + 1) % kMany);
  }
  int sum = 0;
  for (int key = 0; key < kMany; ++key) sum += std::stoi(mortals.get(0, name_of(key)));
  EXPECT_EQ(sum, kMany * 100);
}

TEST(StoreLeave, AScanReturnsEachKeyOnceWhileTheyMove) {
  for (std::uint64_t pause = 1'000; pause < 60'000; pause += 6'000) {
    Mortals mortals(4, 3, Mortals::network(), roomy_store());
    const auto expected = filled(mortals, 60);
    auto leave = mortals.at(1).leave();
    EXPECT_EQ(mortals.scanned(3, 1, pause), expected) << "STO-M2: pause " << pause;
    EXPECT_EQ(mortals.end_of(leave), Status::ok);
  }
}

TEST(StoreLeave, WithoutRoomAtTheOtherHomeEndsAndCallsGoOn) {
  Mortals mortals(2, 2);
  std::map<std::string, std::string> expected;
  for (int key = 0; key < 400; ++key) {
    // By the member that leaves: it has the slabs in which there will be room.
    auto put = mortals.at(1).put(name_of(key), std::string(4'000, 'v') + name_of(key));
    if (mortals.end_of(put) == Status::ok)
      expected[name_of(key)] = std::string(4'000, 'v') + name_of(key);
  }
  auto leave = mortals.at(1).leave();
  EXPECT_EQ(mortals.end_of(leave), Status::no_room);
  expect_all(mortals, 0, expected);
  // With room it goes on.
  int left = 0;
  for (auto& [key, value] : expected)
    if (++left > 40) {
      auto erase = mortals.at(0).erase(key);
      EXPECT_EQ(mortals.end_of(erase), Status::ok);
      value.clear();
    }
  std::erase_if(expected, [](const auto& one) { return one.second.empty(); });
  auto again = mortals.at(1).leave();
  EXPECT_EQ(mortals.end_of(again), Status::ok);
  expect_all(mortals, 0, expected);
}

TEST(StoreLeave, IsRefusedWhereItIsNotOffered) {
  StoreOptions options = Mortals::tiny_store();
  options.copies = 2;
  Mortals with_copies(3, 2, Mortals::network(), options);
  auto leave = with_copies.at(1).leave();
  EXPECT_EQ(with_copies.end_of(leave), Status::not_allowed) << "one home has no second copies";
  options.copies = 1;
  options.eviction = Eviction::lru;
  Mortals evicting(3, 3, Mortals::network(), options);
  auto of_evicting = evicting.at(1).leave();
  EXPECT_EQ(evicting.end_of(of_evicting), Status::not_allowed);
  Mortals one(3, 2);
  auto of_client = one.at(2).leave();
  EXPECT_EQ(one.end_of(of_client), Status::not_allowed);
}

}  // namespace
}  // namespace dunlin

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/joining.hpp"
#include "store/mortals.hpp"
#include "store/stores.hpp"
#include "support/rounds.hpp"

/// Homes that leave on purpose, in a store with two copies of each key, while the keys are in use.
namespace dunlin {
namespace {

using remote::Status;
using test::Mortals;
using test::name_of;

StoreOptions two_copies() {
  StoreOptions options = test::small_store();
  options.expected_keys = 8;
  options.copies = 2;
  return options;
}

/// Members with a store of some keys, and the values that these have.
struct Drained : Mortals {
  explicit Drained(std::uint32_t members = 6, std::uint32_t homes = 5,
                   const StoreOptions& options = two_copies())
      : Mortals(members, homes, network(), options) {}
  void fill(int many) {
    for (int key = 0; key < many; ++key) change(0, key, "v");
  }
  void change(Rank by, int key, const std::string& text) {
    std::string value = std::string(static_cast<std::size_t>(key) * 20, 'v') + text;
    put(by, name_of(key), value);
    expected[name_of(key)] = std::move(value);
  }
  Status leave(Rank rank) {
    auto leaves = at(rank).leave();
    return end_of(leaves);
  }
  void expect_all(Rank by, const char* why) {
    for (const auto& [key, value] : expected) EXPECT_EQ(get(by, key), value) << why << ": " << key;
    EXPECT_EQ(scanned(by), expected) << why;
  }
  void expect_complete(Rank dead, std::initializer_list<Rank> left) {
    const auto is_complete = [&] {
      return std::ranges::all_of(left, [&](Rank rank) {
        return !nodes[rank].progress->contains(dead) && at(rank).statistics().copies_complete;
      });
    };
    EXPECT_TRUE(world.run_until(is_complete, 10'000'000'000))
        << "STO-C4: copies are not made again";
  }
  std::map<std::string, std::string> expected;
};

TEST(StoreDrain, OneHomeAfterTheOtherLeavesAndNoKeyIsLost) {
  Drained members;
  members.fill(60);
  auto erase = members.at(1).erase(name_of(7));
  EXPECT_EQ(members.end_of(erase), Status::ok);
  members.expected.erase(name_of(7));
  for (const Rank leaves : {Rank{2}, Rank{3}, Rank{0}}) {
    members.expect_all(1, "STO-M1");  // the locations are cached
    EXPECT_EQ(remote::describe(members.leave(leaves)), "done");
    EXPECT_GT(members.at(leaves).statistics().keys_moved, 0U);
    EXPECT_EQ(members.at(leaves).statistics().keys, 0U);
    EXPECT_EQ(members.at(leaves).statistics().value_bytes, 0U);
    for (const Rank by : {Rank{1}, leaves, Rank{5}}) members.expect_all(by, "STO-M1");
    for (int key = 0; key < 60; key += 9) members.change(1, key, "after " + std::to_string(leaves));
    for (int key = 0; key < 60; ++key) EXPECT_NE(members.at(4).home_of(name_of(key)), leaves);
    auto count = members.at(5).count();
    EXPECT_EQ(members.end_of(count), Status::ok);
    EXPECT_EQ(count.keys(), members.expected.size());
    members.nodes[leaves].group->leave();
    EXPECT_TRUE(members.world.run_until(
        [&] { return !members.nodes[1].progress->contains(leaves); }, 1'000'000'000));
    members.expect_all(4, "STO-M1");
  }
  EXPECT_EQ(members.leave(1), Status::not_allowed) << "one home has no second copies";
  members.expect_complete(0, {1, 4});
  std::map<std::string, int> seen;
  for (const Rank rank : {Rank{1}, Rank{4}})
    members.at(rank).for_each_local([&](const StoreEntry& entry) {
      ++seen[{reinterpret_cast<const char*>(entry.key.data()), entry.key.size()}];
    });
  EXPECT_EQ(seen.size(), members.expected.size());
  for (const auto& [key, times] : seen) EXPECT_EQ(times, 1) << "STO-C3: " << key;
  members.world.crash(4);
  members.expect_all(1, "STO-C1");
}

TEST(StoreDrain, TwoHomesThatLeaveAtOnceLeaveOneAfterTheOther) {
  for (const auto& [one, other] : {std::pair{Rank{0}, Rank{1}}, {Rank{2}, Rank{0}}, {3, 2}}) {
    Drained members;
    members.fill(40);
    auto first = members.at(one).leave();
    auto second = members.at(other).leave();
    EXPECT_EQ(members.end_of(first), Status::ok);
    EXPECT_EQ(members.end_of(second), Status::ok);
    members.expect_all(5, "STO-M1");
  }
}

/// The last home has got the key's chain from homes at which it was erased before.
TEST(StoreDrain, AVersionIsNeverGivenAgain) {
  Drained members;
  std::string key = "key";
  while (members.at(0).home_of(key) != 1) key += "y";
  std::uint64_t last = 0;
  for (int round = 0; round < 10; ++round) {
    auto put = members.at(0).put(key, std::to_string(round));
    members.end_of(put);
    last = put.version();
    auto erase = members.at(2).erase(key);
    members.end_of(erase);
  }
  for (const Rank leaves : {Rank{1}, Rank{2}}) EXPECT_EQ(members.leave(leaves), Status::ok);
  auto put = members.at(0).put(key, "again");
  EXPECT_EQ(members.end_of(put), Status::ok);
  EXPECT_GT(put.version(), last) << "STO-M3";
}

/// The home that got the first place dies as soon as the other one has left.
TEST(StoreDrain, WhatIsPutWhileAHomeLeavesIsAtTwoHomesThatStay) {
  for (const Rank dies : {Rank{0}, Rank{2}, Rank{3}}) {
    SCOPED_TRACE("home " + std::to_string(dies) + " dies");
    Drained members;
    members.fill(40);
    auto leave = members.at(1).leave();
    for (int i = 0; !leave.finished(); ++i) {
      members.change(static_cast<Rank>(2 * (i % 3)), i % 40, "round " + std::to_string(i));
      if (i % 11 == 0) {
        auto erase = members.at(5).erase(name_of(i % 40));
        EXPECT_EQ(members.end_of(erase), Status::ok);
        members.expected.erase(name_of(i % 40));
      }
      ASSERT_LT(i, 100'000) << "hangs";
    }
    EXPECT_EQ(remote::describe(leave.status()), "done");
    members.world.crash(dies);
    members.expect_all(4, "STO-M9");
  }
}

/// Home 1 leaves, and a member has died amid that: nothing is lost, and the leave goes on. Nor is
/// anything lost when a further one dies, once the copies have been made again.
void expect_nothing_lost(Drained& members, StoreOperation& leave, Rank dies) {
  auto put = members.at(4).put(name_of(3), "under way");
  members.world.crash(dies);
  EXPECT_EQ(remote::describe(members.end_of(put)), "done") << "STO-C1";
  members.expected[name_of(3)] = "under way";
  members.expect_all(4, "STO-M9");
  if (dies != 1) {
    EXPECT_EQ(remote::describe(members.end_of(leave)), "done") << "STO-M9: goes on";
    EXPECT_EQ(members.at(1).statistics().keys, 0U);
    members.expect_all(1, "STO-M9");
  }
  for (const Rank rank : {Rank{0}, Rank{1}, Rank{2}, Rank{3}, Rank{4}})
    if (rank != dies) members.expect_complete(dies, {rank});
  members.world.crash(dies == 2 ? 3 : 2);
  members.expect_all(4, "STO-C4");
}

TEST(StoreDrain, ADeathAmidALeaveLosesNothing) {
  std::uint64_t before = 0, after = 0;
  for (const Rank dies : {Rank{0}, Rank{1}, Rank{2}, Rank{3}, Rank{5}})
    for (std::uint64_t moment = 0; moment < 2'500'000; moment += 250'000) {
      SCOPED_TRACE("member " + std::to_string(dies) + " dies after " + std::to_string(moment));
      Drained members;
      members.fill(30);
      auto leave = members.at(1).leave();
      const std::uint64_t until = members.world.now_ns() + moment;
      for (int i = 0; members.world.now_ns() < until; ++i)
        members.change(4, i % 30, "round " + std::to_string(i));
      ++(leave.finished() ? after : before);
      expect_nothing_lost(members, leave, dies);
      if (testing::Test::HasFailure()) return;
    }
  EXPECT_GT(before, 0U);
  EXPECT_GT(after, 0U);
}

/// Some chains have gone, others not.
TEST(StoreDrain, ADeathWhileChainsDepartLosesNothing) {
  StoreOptions options = two_copies();
  options.expected_keys = 200;
  std::uint64_t amid = 0;
  for (const Rank dies : {Rank{0}, Rank{1}, Rank{2}, Rank{3}, Rank{5}})
    for (std::uint64_t later = 0; later < 60'000; later += 4'000) {
      SCOPED_TRACE("member " + std::to_string(dies) + " dies " + std::to_string(later) +
                   " after the first chain went");
      Drained members(6, 5, options);
      members.fill(30);
      auto leave = members.at(1).leave();
      EXPECT_TRUE(members.world.run_until([&] { return members.at(1).statistics().keys_moved > 0; },
                                          1'000'000'000));
      members.world.run_for(later);
      if (members.at(1).statistics().keys > 0) ++amid;
      expect_nothing_lost(members, leave, dies);
      if (testing::Test::HasFailure()) return;
    }
  EXPECT_GT(amid, 5U);
}

TEST(StoreDrain, TransactionsGoOn) {
  constexpr int kMany = 12;
  Drained members;
  for (int key = 0; key < kMany; ++key) members.put(0, name_of(key), "100");
  const auto transfer = [&](int from, int to) {
    Status status = Status::conflict;
    for (int tries = 0; tries < 200 && status == Status::conflict; ++tries) {
      StoreTransaction moves(members.at(5));
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
    for (int round = 0; !leave.finished(); ++round)
      transfer(round % kMany, (round * 5 + 1) % kMany);
    EXPECT_EQ(remote::describe(leave.status()), "done");
    for (int round = 0; round < 20; ++round) transfer(round % kMany, (round * 7 + 1) % kMany);
  }
  members.world.crash(3);
  int sum = 0;
  for (int key = 0; key < kMany; ++key) sum += std::stoi(members.get(0, name_of(key)));
  EXPECT_EQ(sum, kMany * 100) << "STO-M10";
}

TEST(StoreDrain, AScanReturnsEachKeyOnceWhileAHomeLeaves) {
  for (std::uint64_t pause = 1'000; pause < 60'000; pause += 6'000) {
    Drained members;
    members.fill(60);
    auto leave = members.at(1).leave();
    while (!leave.finished())
      EXPECT_EQ(members.scanned(5, 1, pause), members.expected) << "STO-M2: pause " << pause;
    EXPECT_EQ(members.scanned(1, 1, pause), members.expected) << "STO-M2: pause " << pause;
  }
}

TEST(StoreDrain, WithoutRoomAtAnotherHomeItWaitsForRoom) {
  StoreOptions options = Mortals::tiny_store();
  options.copies = 2;
  Drained members(3, 3, options);
  for (int key = 0; key < 400; ++key) {
    const std::string value = std::string(4'000, 'v') + name_of(key);
    auto put = members.at(static_cast<Rank>(key % 3)).put(name_of(key), value);
    if (members.end_of(put) == Status::ok) members.expected[name_of(key)] = value;
  }
  EXPECT_EQ(members.leave(1), Status::no_room) << "STO-M12";
  members.expect_all(0, "STO-M12");
  int left = 0;
  for (auto& [key, value] : members.expected)
    if (++left > 20) {
      auto erase = members.at(0).erase(key);
      EXPECT_EQ(members.end_of(erase), Status::ok);
      value.clear();
    }
  std::erase_if(members.expected, [](const auto& one) { return one.second.empty(); });
  EXPECT_EQ(remote::describe(members.leave(1)), "done") << "STO-M12: goes on with room";
  members.expect_all(0, "STO-M12");
  members.world.crash(2);
  members.expect_all(0, "STO-M9");
}

TEST(StoreDrain, IsRefusedWhereItIsNotOffered) {
  Drained two(3, 2);
  EXPECT_EQ(two.leave(0), Status::not_allowed) << "the other home would have the only copies";
  EXPECT_EQ(two.leave(2), Status::not_allowed) << "of a client";
  test::Joining members([] {
    StoreOptions options = two_copies();
    options.contributes = true;
    return options;
  }());
  members.join(test::kLate);
  EXPECT_EQ(members.take_keys(test::kLate), Status::not_allowed);
}

/// STO-M11, at any moment.
TEST(StoreDrain, AMemberThatJoinsMeanwhileKnowsOfIt) {
  for (std::uint64_t moment = 0; moment < 1'000'000; moment += 100'000) {
    SCOPED_TRACE("joins after " + std::to_string(moment));
    test::Joining members(two_copies());
    members.fill(30);
    auto leave = members.at(0).store.leave();
    members.world.run_for(moment);
    members.join(test::kLate);
    for (int key = 0; key < 30; ++key)
      members.put(test::kLate, name_of(key), members.expected[name_of(key)] = "of the joiner");
    EXPECT_EQ(remote::describe(members.end_of(leave)), "done");
    members.world.crash(1);
    for (const auto& [key, value] : members.expected)
      EXPECT_EQ(members.get(test::kLate, key), value) << "STO-M11: " << key;
    if (HasFailure()) return;
  }
}

// --- on each fabric ------------------------------------------------------------------------------

struct DrainOnStores : test::OnStores {};
INSTANTIATE_TEST_SUITE_P(OnAll, DrainOnStores, testing::ValuesIn(test::store_backends()),
                         test::name_of_backend);

TEST_P(DrainOnStores, CallsGoOnWhileAHomeLeaves) {
  constexpr std::uint64_t kMany = 200;
  StoreOptions options = test::small_store();
  options.copies = 2;
  start(4, options);
  for (std::uint64_t key = 0; key < kMany; ++key) put(0, key, std::to_string(key));
  auto leave = at(1).leave();
  std::uint64_t round = 0;
  do {
    const std::uint64_t key = round++ * 7 % kMany;
    EXPECT_EQ(get(2, key), std::to_string(key)) << "STO-M1";
    EXPECT_TRUE(put(0, key, std::to_string(key))) << "STO-M1: it is there";
    EXPECT_EQ(get(1, key), std::to_string(key)) << "STO-M1";
    int polls = 0;  // on shm no call has polled the home that leaves
    cluster->until([&] { return ++polls > 2; });
  } while (!leave.finished());
  EXPECT_EQ(remote::describe(leave.status()), "done");
  for (std::uint64_t key = 0; key < kMany; ++key) {
    EXPECT_EQ(get(static_cast<Rank>(key % 4), key), std::to_string(key));
    EXPECT_NE(at(0).home_of(key), 1U);
  }
  EXPECT_EQ(count(2), kMany);
}

// --- by threads ----------------------------------------------------------------------------------

/// One thread counts in all keys, and reads them, while one home of them after the other leaves.
TEST(StoreDrain, NoCountIsLostBesideHomesThatLeave) {
  constexpr std::uint64_t kMany = 256, kCounts = test::rounds(20'000);
  constexpr std::uint32_t kHomes = 4, kClient = kHomes;
  const auto& all = test::backends();
  const auto shm = std::find_if(all.begin(), all.end(),
                                [](const test::NodeBackend& one) { return one.name == "Shm"; });
  StoreOptions options = test::small_store();
  options.copies = 2;
  options.homes = kHomes;
  const std::string group = test::fresh_group();
  std::atomic<std::uint32_t> begun = 0, left = 0;
  std::atomic<bool> is_done = false;
  std::array<std::jthread, kHomes> homes;
  for (Rank rank = 0; rank < kHomes; ++rank)
    homes.at(rank) = std::jthread([&, rank] {
      const auto fabric = shm->join({.group = group, .nodes = kHomes + 1, .rank = rank});
      Store store(*fabric, options);
      while (begun < rank + 1 && !is_done) store.poll();
      if (rank < 2) {
        auto leave = store.leave();
        EXPECT_EQ(remote::describe(leave.wait()), "done");
        EXPECT_GT(store.statistics().keys_moved, kMany / 8);
        ++left;
      }
      while (!is_done) store.poll();
    });
  {
    const auto fabric = shm->join({.group = group, .nodes = kHomes + 1, .rank = kClient});
    Store store(*fabric, options);
    const std::uint64_t one = 1;
    for (std::uint64_t key = 0; key < kMany; ++key)
      EXPECT_EQ(store.put(key, std::as_bytes(std::span(&one, 1))).wait(), Status::ok);
    std::map<std::uint64_t, std::uint64_t> expected;
    for (std::uint64_t i = 0; i < kCounts || left < 2; ++i) {
      if (i == kCounts / 4) begun = 1;
      if (i > kCounts / 2 && left == 1) begun = 2;
      const std::uint64_t key = i * 7 % kMany;
      std::uint64_t next = 0;
      auto counts = store.update(key, [&](std::optional<std::span<const std::byte>> now) {
        if (now && now->size() == sizeof next) std::memcpy(&next, now->data(), sizeof next);
        ++next;
        return StoreUpdate::put(std::as_bytes(std::span(&next, 1)));
      });
      EXPECT_EQ(remote::describe(counts.wait()), "done");
      EXPECT_EQ(next, ++expected.try_emplace(key, 1).first->second) << "STO-M1, STO-M2: " << key;
      auto get = store.get(key);
      EXPECT_EQ(get.wait(), Status::ok);
      std::uint64_t read = 0;
      if (get.value().size() == sizeof read) std::memcpy(&read, get.value().data(), sizeof read);
      EXPECT_EQ(read, next) << "STO-M2: " << key;
      if (testing::Test::HasFailure()) break;
    }
    begun = kHomes;
    while (left < 2) store.poll();  // it waits until this member knows
    is_done = true;
    for (std::jthread& home : homes) home.join();
  }
}

}  // namespace
}  // namespace dunlin

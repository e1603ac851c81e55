#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/group.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/store.hpp>

#include "store/sim_members.hpp"
#include "support/fresh_group.hpp"
#include "support/rounds.hpp"

/// Calls go on while keys move: to a member that takes some, or from one that leaves.
namespace dunlin {
namespace {

using test::two_copies;

/// A way in which keys move, and who moves them.
struct Move {
  const char* name;
  StoreOptions options;
  std::uint32_t members;     // of these, the first ones hold keys
  std::vector<Rank> movers;  // one after the other
  bool takes;                // keys; else the movers leave
  std::uint64_t keys = 200;

  friend std::ostream& operator<<(std::ostream& to, const Move& move) { return to << move.name; }
};

StoreOptions with(StoreOptions options, std::uint32_t homes, std::uint32_t copies,
                  bool contributes) {
  options.homes = homes;
  options.copies = copies;
  options.contributes = contributes;
  return options;
}

// --- on each fabric ------------------------------------------------------------------------------

/// A member's part of a store on a group.
struct GroupStore {
  GroupStore(Fabric& fabric, const StoreOptions& options)
      : group(fabric), members(group), progress(group.fabric(), members), store(progress, options) {
    if (fabric.rank() >= options.homes && options.homes != 0) store.set_weight(0);
  }
  std::size_t poll() { return progress.poll(); }
  Group group;
  GroupMembers members;
  remote::Progress progress;
  Store store;
};
using GroupStores = test::Cluster<GroupStore, StoreOptions>;

struct WhileKeysMove : testing::TestWithParam<std::tuple<test::ClusterBackend<GroupStores>, Move>> {
  void SetUp() override { DUNLIN_SKIP_WITHOUT(std::get<0>(GetParam())); }
  Store& at(Rank rank) { return (*cluster)[rank].store; }
  StoreOperation& ended(StoreOperation& operation) {
    EXPECT_EQ(remote::describe(cluster->end_of(operation)), "done");
    return operation;
  }
  std::string get(Rank by, StoreKey key) {
    auto op = at(by).get(key);
    return ended(op).found() ? std::string(op.text()) : "-";
  }
  bool put(Rank by, StoreKey key, std::string_view value) {
    auto op = at(by).put(key, value);
    return ended(op).found();
  }
  std::unique_ptr<GroupStores> cluster;
};

std::vector<Move> moves_on_fabrics() {
  return {{"JoinWithOneCopy", with(test::roomy_store(), 2, 1, true), 3, {2}, true},
          {"JoinWithTwoCopies", with(two_copies(), 3, 2, true), 4, {3}, true},
          {"LeaveWithOneCopy", with(test::small_store(), 0, 1, false), 3, {1}, false},
          {"LeaveWithTwoCopies", with(test::small_store(), 0, 2, false), 4, {1}, false}};
}

/// A group needs words that go inline.
std::vector<test::ClusterBackend<GroupStores>> backends_of_groups() {
  auto all = test::cluster_backends<GroupStores>();
  std::erase_if(all, [](const auto& one) { return one.name == "SimNarrow"; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(OnAll, WhileKeysMove,
                         testing::Combine(testing::ValuesIn(backends_of_groups()),
                                          testing::ValuesIn(moves_on_fabrics())),
                         [](const auto& one) {
                           return std::get<0>(one.param).name + std::get<1>(one.param).name;
                         });

TEST_P(WhileKeysMove, CallsGoOn) {
  const Move& move = std::get<1>(GetParam());
  cluster = std::get<0>(GetParam()).start(move.members, move.options);
  const Rank mover = move.movers.front(), last = move.members - 1;
  for (std::uint64_t key = 0; key < move.keys; ++key) put(0, key, std::to_string(key));
  if (move.takes) at(mover).set_weight(4);
  StoreOperation moving = move.takes ? at(mover).settle() : at(mover).leave();
  std::uint64_t round = 0;
  do {
    const std::uint64_t key = round++ * 7 % move.keys;
    EXPECT_EQ(get(last, key), std::to_string(key)) << "STO-M1";
    EXPECT_TRUE(put(0, key, std::to_string(key))) << "STO-M1: it is there";
    EXPECT_EQ(get(1, key), std::to_string(key)) << "STO-M1";
    cluster->pass(2);  // on shm no call has polled the home that gives
  } while (!moving.finished());
  EXPECT_EQ(remote::describe(moving.status()), "done");
  std::uint64_t there = 0;
  for (std::uint64_t key = 0; key < move.keys; ++key) {
    EXPECT_EQ(get(static_cast<Rank>(key % move.members), key), std::to_string(key));
    there += at(0).home_of(key) == mover ? 1 : 0;
  }
  const std::uint64_t held = at(mover).statistics().keys;
  if (move.takes) {
    EXPECT_GT(there, move.keys / 8 / move.options.copies);
    EXPECT_TRUE(move.options.copies == 1 ? held == there : held > there) << "second copies, too";
  } else {
    EXPECT_EQ(there, 0U);
    EXPECT_EQ(held, 0U);
  }
  auto count = at(last).count();
  EXPECT_EQ(ended(count).keys(), move.keys);
}

// --- by threads ----------------------------------------------------------------------------------

/// Adds 1 to the numbers of keys, and reads them.
class CountingClient {
 public:
  explicit CountingClient(Store& store) : store_(store) {}
  void count_in(std::uint64_t key) {
    std::uint64_t next = 0;
    auto counts = store_.update(key, [&](std::optional<std::span<const std::byte>> now) {
      next = 0;
      if (now && now->size() == sizeof next) std::memcpy(&next, now->data(), sizeof next);
      ++next;
      return StoreUpdate::put(std::as_bytes(std::span(&next, 1)));
    });
    EXPECT_EQ(remote::describe(counts.wait()), "done");
    EXPECT_EQ(next, ++expected_[key]) << "STO-M1, STO-M2: " << key;
    auto get = store_.get(key);
    EXPECT_EQ(remote::describe(get.wait()), "done");
    std::uint64_t read = 0;
    if (get.value().size() == sizeof read) std::memcpy(&read, get.value().data(), sizeof read);
    EXPECT_EQ(read, next) << "STO-M2: " << key;
  }

 private:
  Store& store_;
  std::map<std::uint64_t, std::uint64_t> expected_;
};

void move_keys(Store& store, const Move& move) {
  if (!move.takes) {
    EXPECT_EQ(remote::describe(store.leave().wait()), "done");
    EXPECT_GT(store.counters().at("keys_moved"), 0U);
    EXPECT_EQ(store.statistics().keys, 0U);
    return;
  }
  store.set_weight(4);
  EXPECT_EQ(remote::describe(store.settle().wait()), "done");
  EXPECT_GT(store.statistics().keys, move.keys / 8);
}

struct WhileKeysMoveOfThreads : testing::TestWithParam<Move> {};

INSTANTIATE_TEST_SUITE_P(
    All, WhileKeysMoveOfThreads,
    testing::Values(
        Move{"JoinWithOneCopy", with(test::roomy_store(), 1, 1, true), 2, {1}, true, 512},
        Move{"JoinWithTwoCopies", with(two_copies(), 3, 2, true), 4, {3}, true, 256},
        Move{"LeaveWithOneCopy", with(test::small_store(), 2, 1, false), 2, {1}, false, 512},
        Move{"LeaveWithTwoCopies", with(test::small_store(), 4, 2, false), 4, {0, 1}, false, 256}),
    [](const auto& one) { return one.param.name; });

/// A thread for each member, and this one, the client.
TEST_P(WhileKeysMoveOfThreads, NoCountIsLost) {
  const Move& move = GetParam();
  const std::uint64_t counts = test::rounds(20'000);
  const test::NodeBackend& shm = test::backend_of("Shm");
  const std::string group = test::fresh_group();
  std::atomic<std::size_t> begun = 0, moved = 0;
  std::atomic<bool> is_done = false;
  std::vector<std::jthread> members;
  for (Rank rank = 0; rank < move.members; ++rank)
    members.emplace_back([&, rank] {
      const auto fabric = shm.join({.group = group, .nodes = move.members + 1, .rank = rank});
      GroupStore member(*fabric, move.options);
      Store& store = member.store;
      const auto turn = std::ranges::find(move.movers, rank) - move.movers.begin();
      if (const auto place = static_cast<std::size_t>(turn); place < move.movers.size()) {
        while (begun <= place) store.poll();
        move_keys(store, move);
        ++moved;
      }
      while (!is_done) store.poll();
    });
  const auto fabric = shm.join({.group = group, .nodes = move.members + 1, .rank = move.members});
  StoreOptions of_client = move.options;
  of_client.contributes = false;
  GroupStore member(*fabric, of_client);
  Store& store = member.store;
  CountingClient client(store);
  for (std::uint64_t key = 0; key < move.keys; ++key) client.count_in(key);
  for (std::uint64_t i = 0; i < counts || moved < move.movers.size(); ++i) {
    if (i >= counts / 4) begun = moved + 1;
    client.count_in(i * 7 % move.keys);
    if (testing::Test::HasFailure()) break;
  }
  begun = move.movers.size();
  while (moved < move.movers.size()) store.poll();  // they wait until this member knows
  is_done = true;
  members.clear();
}

}  // namespace
}  // namespace dunlin

#include <cstdint>
#include <memory>
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
using test::kLate;
using test::name_of;
using test::two_copies;

TEST(StoreMovesJoin, EachMemberMayDieAfterwards) {
  for (const Rank dies : {Rank{0}, Rank{1}, Rank{2}, kLate})
    for (const Rank last : {kLate, kLate + 1}) {
      SCOPED_TRACE("member " + std::to_string(dies) + " dies, " + std::to_string(last) +
                   " is last");
      Joining members(two_copies());
      members.fill(40);
      for (Rank joins = kLate; joins <= last; ++joins) members.join(joins);
      EXPECT_EQ(members.settle(last), Status::ok);
      members.world.crash(dies);
      for (const Rank by : {dies == 0 ? Rank{1} : Rank{0}, dies == 2 ? kLate : Rank{2}})
        members.expect_gets(by);
      if (HasFailure()) return;
    }
}

TEST(StoreMovesJoin, AHomeThatHasGivenKeysLeaves) {
  for (Rank dies : {Rank{0}, Rank{1}, Rank{2}, kLate, kLate + 1}) {  // + 1: none
    Joining members(two_copies());
    members.fill(40);
    members.join(kLate);
    EXPECT_EQ(members.settle(kLate), Status::ok);
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
  EXPECT_EQ(members.settle(kLate), Status::ok);
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
  members.options.limit_bytes = 2 << 16;  // has room for 14 of its 50
  members.join(kLate);
  EXPECT_EQ(members.settle(kLate), Status::ok);
  EXPECT_FALSE(members.at(1).placement().members.back().takes);
  for (const Rank by : {Rank{1}, kLate})
    for (const auto& [key, value] : members.expected) EXPECT_EQ(members.get(by, key), value);
  EXPECT_EQ(members.scanned(2), members.expected);
  const auto all = members.expected;
  for (const auto& [key, value] : all)
    if (key.back() != '7') members.erase(0, key);
  members.world.run_for(2'000'000'000);
  EXPECT_EQ(remote::describe(members.settle(kLate)), "done") << "it goes on";
  members.expect_all(1);
  members.world.crash(kLate);
  members.expect_gets(1);
}

/// A member that contributes counts as one to which keys can move.
TEST(StoreMovesJoin, AMemberWithoutKeysTakesThoseOfAHomeThatLeaves) {
  Joining members(two_copies(2));  // the third founder is a client
  members.fill(30);
  EXPECT_EQ(members.leave(0), Status::not_allowed);
  members.join(kLate);
  EXPECT_EQ(members.settle(kLate), Status::ok);
  EXPECT_EQ(remote::describe(members.leave(0)), "done");
  EXPECT_EQ(members.keys_at(0), 0U);
  EXPECT_EQ(members.keys_at(kLate), 30U);
  for (Rank by = 0; by <= kLate; ++by) members.expect_all(by);
  members.world.crash(1);
  members.expect_gets(2);
}

TEST(StoreMovesJoin, AStoreThatEndsWhileItTakesKeysHoldsNobodyUp) {
  struct Own {
    Own(std::unique_ptr<Group> its_group, const StoreOptions& options)
        : group(std::move(its_group)),
          members(*group, test::kMost),
          store(std::make_unique<Store>(progress, options)) {}
    std::unique_ptr<Group> group;
    GroupMembers members;
    remote::Progress progress{group->fabric(), members};
    std::unique_ptr<Store> store;
  };
  for (std::uint64_t after_ns = 0; after_ns < 600'000; after_ns += 37'000) {
    SCOPED_TRACE("it ends after " + std::to_string(after_ns) + " ns");
    Joining members;
    std::unique_ptr<Own> own;
    members.fill(40);
    members.enter(kLate);
    members.world.on(kLate, [&] {
      own = std::make_unique<Own>(std::move(members.nodes[kLate].group), members.options);
    });
    members.world.attach(kLate, [&] { return own != nullptr ? own->progress.poll() : 0; });
    ASSERT_TRUE(members.world.run_until([&] { return own != nullptr; }, 1'000'000'000));
    auto take = std::make_unique<StoreOperation>();
    own->store->settle(*take);
    members.world.run_for(after_ns);
    take.reset();
    members.world.on(kLate, [&] { own->store.reset(); });
    members.world.run_for(10'000);
    members.join(kLate + 1);
    EXPECT_EQ(members.settle(kLate + 1), Status::ok);
    members.put(2, name_of(1'000), "new");
    EXPECT_EQ(members.get(kLate + 1, name_of(1'000)), "new");
    members.world.detach_all(kLate);
    if (HasFailure()) return;
  }
}

TEST(StoreMovesJoin, OneComesAndAnotherGoesAtOnce) {
  for (const bool leave_is_first : {true, false}) {
    Joining members(two_copies());
    members.fill(40);
    members.join(kLate);
    auto leave = std::make_unique<StoreOperation>();
    if (leave_is_first) members.at(1).leave(*leave);
    members.join(kLate + 1);
    if (!leave_is_first) members.at(1).leave(*leave);
    EXPECT_EQ(remote::describe(members.end_of(*leave)), "done");
    EXPECT_EQ(remote::describe(members.settle(kLate + 1)), "done");
    EXPECT_GT(members.keys_at(kLate), 0U);
    EXPECT_GT(members.keys_at(kLate + 1), 0U);
    EXPECT_EQ(members.keys_at(1), 0U);
    for (Rank by = 0; by <= kLate + 1; ++by) members.expect_all(by);
  }
}

/// STO-P8: one that has slept through changes of the map asks nobody that is not asked any more.
TEST(StoreMovesJoin, EachMemberMaySleepThroughAMove) {
  for (const Rank sleeps : {Rank{0}, Rank{2}, kLate})
    for (std::uint64_t moment = 0; moment < 900'000; moment += 100'000) {
      SCOPED_TRACE("member " + std::to_string(sleeps) + " after " + std::to_string(moment));
      Joining members(two_copies());
      members.fill(30);
      members.join(kLate);
      members.world.run_for(moment);
      members.world.pause(sleeps, 700'000);
      const Rank other = sleeps == 2 ? 0 : 2;
      for (int key = 0; key < 30; key += 2) members.change(other, key, "meanwhile");
      members.expect_gets(sleeps, "STO-M2");
      EXPECT_EQ(remote::describe(members.settle(kLate)), "done");
      for (Rank by = 0; by <= kLate; ++by) members.expect_all(by);
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace dunlin

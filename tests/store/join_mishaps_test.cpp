#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <dunlin/group_members.hpp>
#include <dunlin/store.hpp>

#include "store/sim_members.hpp"

/// Moves of keys that meet a home without room, a store that ends, or each other.
namespace dunlin {
namespace {

using remote::Status;
using test::Joining;
using test::kLate;
using test::name_of;
using test::roomy_store;

/// Founders whose memory the values of so many keys fill, as far as they go in.
struct Full : Joining {
  explicit Full(int keys, std::uint32_t others = 2) : Joining(test::tiny_store(), others) {
    options.contributes = true;
    options.memory_bytes = 16 << 20;  // of those that join
    fill_up(keys, {0});
  }
};

TEST(StoreJoinMishaps, AMoveWithoutRoomTakesItsCopiesBack) {
  int without_room = 0;
  for (int keys = 120; keys < 400; keys += 20) {
    SCOPED_TRACE(std::to_string(keys) + " keys");
    Full members(keys);
    const Status status = members.leave(0);
    without_room += status == Status::no_room ? 1 : 0;
    members.expect_all(2);
    if (HasFailure()) return;
  }
  EXPECT_GT(without_room, 0);
}

/// What a home has of another's keys is at the next member already, as far as it goes.
TEST(StoreJoinMishaps, WhatIsCoveredStaysCoveredThoughItCameOnTwoWays) {
  int both_ways = 0;
  for (int keys = 420; keys < 540; keys += 20) {  // less than half of the first home's go
    SCOPED_TRACE(std::to_string(keys) + " keys");
    Full members(keys);
    const std::uint64_t before = members.keys_at(0);
    if (members.leave(0) != Status::no_room || members.keys_at(0) == before) continue;
    members.join(kLate);
    for (Status status = Status::ok; status == Status::ok;) status = members.take_keys(kLate);
    if (members.leave(0) != Status::ok || members.leave(1) != Status::ok) continue;
    members.expect_all(2);
    ++both_ways;
    EXPECT_EQ(members.keys_at(kLate) + members.keys_at(2), members.expected.size());
    std::uint64_t seen = 0;
    members.at(kLate).for_each_local([&](const StoreEntry&) { ++seen; });
    EXPECT_EQ(seen, members.keys_at(kLate)) << "STO-M5: some are taken for not covered";
    members.part(0, 2);
    members.join(kLate + 1);  // asks who covers the keys of the one that is gone
    members.expect_all(kLate + 1);
    if (HasFailure()) return;
  }
  EXPECT_GT(both_ways, 0);
}

TEST(StoreJoinMishaps, AStoreThatEndsWhileItTakesKeysHoldsNobodyUp) {
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
    own->store->take_keys(*take);
    members.world.run_for(after_ns);
    take.reset();
    members.world.on(kLate, [&] { own->store.reset(); });
    members.world.run_for(10'000);
    members.join(kLate + 1);
    EXPECT_EQ(members.take_keys(kLate + 1), Status::ok);
    members.put(2, name_of(1'000), "new");
    EXPECT_EQ(members.get(kLate + 1, name_of(1'000)), "new");
    members.world.detach_all(kLate);
    if (HasFailure()) return;
  }
}

TEST(StoreJoinMishaps, AMemberTakesOfAnotherHomeIfTheFirstOneLeaves) {
  for (const bool leave_is_first : {true, false}) {
    Joining members(roomy_store(2));
    members.fill(40);
    members.join(kLate);
    const Rank leaves = members.keys_at(0) >= members.keys_at(1) ? 0 : 1;  // that is asked first
    auto leave = std::make_unique<StoreOperation>();
    if (leave_is_first) members.at(leaves).leave(*leave);
    auto take = members.at(kLate).take_keys();
    if (!leave_is_first) members.at(leaves).leave(*leave);
    EXPECT_EQ(remote::describe(members.end_of(take)), "done");
    EXPECT_EQ(remote::describe(members.end_of(*leave)), "done");
    EXPECT_GT(members.keys_at(kLate), 0U);
    EXPECT_EQ(members.keys_at(leaves), 0U);
    for (Rank by = 0; by <= kLate; ++by) members.expect_all(by);
  }
}

}  // namespace
}  // namespace dunlin

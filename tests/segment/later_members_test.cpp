#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "segment/growing_spaces.hpp"

/// Members that join the group while its segments are in use. (The other suites run with such
/// members, too: SimLater.)
namespace dunlin {
namespace {

using remote::Status;
using test::GrowingSpaces;
using test::kPatienceNs;
using test::Parent;
using test::Process;

TEST(SegmentLaterMembers, AreHomesInTurnAndFindWhatWasThere) {
  GrowingSpaces spaces(sim::profile("ib100"), 3, 2, {}, 1);
  const Key key = spaces.make(1, {.bytes = 8, .placement = {0}, .name = "there"});
  EXPECT_EQ(spaces.put(2, key, 7), Status::ok);
  spaces.join(3);
  spaces.join(4);
  const Outcome found = spaces.end_of(spaces[4].find("there"));
  EXPECT_EQ(found.key, key);
  EXPECT_EQ(spaces.get(4, found.key), 7U);
  std::vector<int> segments_at(5);
  for (int i = 0; i < 10; ++i) {
    const Key made = spaces.make(static_cast<Rank>(i % 2), {.bytes = 8});
    ++segments_at.at(made.home());
    EXPECT_EQ(spaces.put(3, made, 9), Status::ok);
    EXPECT_EQ(spaces.get(1, made), 9U);
    EXPECT_TRUE(spaces.end_of(spaces[4].release(made)).ok());
  }
  EXPECT_EQ(segments_at, (std::vector<int>(5, 2)));
  EXPECT_EQ(spaces.end_of(spaces[0].allocate({.bytes = 8, .placement = {5}})).status, Status::lost);
}

/// SEG-13, with copies that lie at members that came later.
TEST(SegmentLaterMembers, HoldCopiesAndTakeSegmentsOver) {
  GrowingSpaces spaces(sim::profile("ib100"), 2, 3);
  for (const Rank node : {2U, 3U, 4U}) spaces.join(node);
  const Key key =
      spaces.make(0, {.bytes = 8, .coherence = Coherence::write, .placement = {1}, .copies = 2});
  EXPECT_GT(spaces.used(2), 0U) << "the second copy";
  EXPECT_EQ(spaces.put(4, key, 1), Status::ok);
  spaces.world.crash(1);
  EXPECT_EQ(spaces.get(0, key), 1U);
  EXPECT_EQ(spaces.put(4, key, 2), Status::ok);
  EXPECT_TRUE(spaces.until([&] { return spaces.used(3) > 0; })) << "another second copy";
  spaces.world.run_for(10'000'000);
  spaces.world.crash(2);
  EXPECT_EQ(spaces.get(0, key), 2U);
  EXPECT_EQ(spaces.get(3, key), 2U);
  EXPECT_TRUE(spaces.end_of(spaces[4].release(key)).ok());
}

/// REM-9, REM-11 and REM-12, with a holder and waiters that came later.
TEST(SegmentLaterMembers, LockInTurnAndPassTheLockOnWhenTheyDie) {
  GrowingSpaces spaces(sim::profile("ib100"), 3, 2);
  for (const Rank node : {3U, 4U}) spaces.join(node);
  const Key key = spaces.make(0, {.bytes = 8, .placement = {1}});
  ASSERT_TRUE(spaces.end_of(spaces[3].lock(key)).ok());
  std::vector<Rank> order;
  std::vector<SegmentOperation> waiters;
  for (const Rank node : {2U, 4U, 0U}) {
    waiters.push_back(spaces[node].lock(key));
    spaces.world.run_for(50'000);
  }
  const std::vector<Rank> by{2, 4, 0};
  for (std::size_t i = 0; i < by.size(); ++i)
    waiters[i].then([&, i] {
      order.push_back(by[i]);
      EXPECT_EQ(waiters[i].result().recovered, i == 0) << "REM-12: the holder has died";
      EXPECT_EQ(spaces[by[i]].unlock(key).status(), Status::ok);
    });
  spaces.world.run_for(100'000);
  EXPECT_TRUE(order.empty());
  spaces.world.crash(3);
  EXPECT_TRUE(spaces.until([&] { return order.size() == by.size(); }));
  EXPECT_EQ(order, by);
}

/// REM-18: two come, at each moment before and after a founder dies with the lock.
TEST(SegmentLaterMembers, ComeInWhileLocksAreRepaired) {
  for (std::uint64_t after_ns = 0; after_ns < 3'000'000 && !testing::Test::HasFailure();
       after_ns += 100'000) {
    SCOPED_TRACE("the holder dies after " + std::to_string(after_ns) + " ns");
    GrowingSpaces spaces(sim::profile("ib100"), 4, 2, {}, 16);
    const Key key = spaces.make(1, {.bytes = 8, .coherence = Coherence::strict, .placement = {0}});
    EXPECT_EQ(spaces.put(2, key, 1), Status::ok);
    ASSERT_TRUE(spaces.end_of(spaces[3].lock(key)).ok());
    SegmentOperation waiter = spaces[2].lock(key);
    for (const Rank node : {4U, 5U}) spaces.enter(node);
    spaces.world.run_for(after_ns);
    spaces.world.crash(3);
    for (const Rank node : {4U, 5U}) {
      ASSERT_TRUE(spaces.until([&] { return spaces.has_entered(node); }));
      spaces.world.on(node, [&spaces, node] { spaces.make_space(node); });
      spaces.world.run_for(10'000);
    }
    EXPECT_TRUE(spaces.end_of(waiter).ok());
    std::vector<SegmentOperation> locks;
    for (const Rank node : {4U, 5U}) locks.push_back(spaces[node].lock(key));
    spaces.world.run_for(1'000'000);
    for (const SegmentOperation& lock : locks)
      EXPECT_FALSE(lock.finished()) << "REM-8: two members hold a lock";
    EXPECT_EQ(spaces[2].unlock(key).status(), Status::ok);
    ASSERT_TRUE(spaces.until([&] { return locks[0].finished() || locks[1].finished(); }));
    const std::size_t first = locks[0].finished() ? 0 : 1;
    spaces.world.run_for(100'000);
    EXPECT_FALSE(locks[1 - first].finished()) << "REM-8: two members hold a lock";
    for (const std::size_t one : {first, 1 - first}) {
      EXPECT_TRUE(spaces.end_of(locks[one]).ok()) << locks[one].describe();
      EXPECT_EQ(spaces[static_cast<Rank>(4 + one)].unlock(key).status(), Status::ok);
    }
  }
}

/// A member without a space holds up nobody, and no member that has one comes in without founders.
TEST(SegmentLaterMembers, NeedAFounderToLetThemIn) {
  GrowingSpaces spaces(sim::profile("ib100"), 1, 3);
  spaces.join(1);
  spaces.join(2);
  spaces.enter(3);
  ASSERT_TRUE(spaces.until([&] { return spaces.has_entered(3); }));
  const Key key = spaces.make(1, {.bytes = 8, .placement = {2}});
  spaces.world.crash(0);
  spaces.until_gone(0, 1);
  spaces.until_gone(0, 3);
  EXPECT_EQ(spaces.put(1, key, 5), Status::ok);
  EXPECT_EQ(spaces.get(2, key), 5U);
  spaces.world.on(3, [&] { spaces.make_space(3); });
  spaces.world.run_for(1'000'000);
  std::uint64_t value = 0;
  EXPECT_EQ(spaces.end_of(spaces[3].get(key, bytes_of(value))).status, Status::lost);
  EXPECT_EQ(spaces.end_of(spaces[3].allocate({.bytes = 8, .placement = {3}})).status, Status::lost);
}

// --- real processes ------------------------------------------------------------------------------

struct SegmentJoins : test::OnProcesses {
  [[nodiscard]] GroupOptions options(Rank rank) const { return {.rendezvous = rendezvous(rank)}; }
  static constexpr std::uint32_t kMost = 8;
};
DUNLIN_RUN_ON(test::backends(), SegmentJoins);

TEST_P(SegmentJoins, OneThatJoinsSharesSegmentsAndIsKilledWithALock) {
  std::vector<Process> founders;
  for (Rank rank = 0; rank < members; ++rank)
    founders.emplace_back([=, this](Parent& parent) {
      const auto fabric = join(rank);
      test::GroupMember member(std::make_unique<Group>(*fabric, options(rank)), kMost);
      SegmentSpace space(member.progress, {.pool_bytes = 1 << 16});
      std::uint64_t value = 7;
      if (rank == 1) {
        auto made = space.allocate({.bytes = 8, .placement = Placement::on(0), .name = "shared"});
        const Key key = made.outcome(kPatienceNs).key;
        auto put = space.put(key, bytes_of(value));
        parent.send_line(put.outcome(kPatienceNs).ok() ? "works" : put.describe());
        Outcome theirs;
        do theirs = space.find("theirs").outcome(kPatienceNs);
        while (theirs.status == Status::unknown);
        while (value != 9 && space.get(theirs.key, bytes_of(value)).outcome(kPatienceNs).ok()) {
        }
        parent.send_line(std::to_string(value));
        auto lock = space.lock(key);
        parent.send_line(lock.outcome(kPatienceNs).recovered ? "recovered" : lock.describe());
      } else {
        parent.send_line("works");
      }
      run(space);
      return 0;
    });
  for (Process& founder : founders) ASSERT_EQ(founder.receive_line(), "works");
  Process late([this](Parent& parent) {
    test::GroupMember member(Group::join("late", options(members), test::kPatienceMs), kMost);
    SegmentSpace space(member.progress, {.pool_bytes = 1 << 16});
    const Key shared = space.find("shared").outcome(kPatienceNs).key;
    std::uint64_t value = 0;
    auto get = space.get(shared, bytes_of(value));
    parent.send_line(get.outcome(kPatienceNs).ok() ? std::to_string(value) : get.describe());
    auto lock = space.lock(shared);
    parent.send_line(lock.outcome(kPatienceNs).ok() ? "locked" : lock.describe());
    auto made = space.allocate({.bytes = 8, .placement = Placement::here(), .name = "theirs"});
    value = 9;
    static_cast<void>(
        space.put(made.outcome(kPatienceNs).key, bytes_of(value)).outcome(kPatienceNs));
    run(space);
    return 0;
  });
  EXPECT_EQ(late.receive_line(), "7");
  EXPECT_EQ(late.receive_line(), "locked");
  EXPECT_EQ(founders[1].receive_line(), "9");
  late.kill();
  EXPECT_EQ(founders[1].receive_line(), "recovered");
  for (Process& founder : founders) founder.kill();
}

}  // namespace
}  // namespace dunlin

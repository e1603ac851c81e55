#include <map>
#include <set>

#include <gtest/gtest.h>

#include "group/cluster_fixture.hpp"
#include "multicast/durable_group.hpp"
#include "support/errors.hpp"
#include "support/own_directory.hpp"
#include "support/rounds.hpp"

/// The durable mode, on simulated networks and disks.
namespace dunlin {
namespace {

using test::contains;
using test::DurableGroup;
using test::DurableMember;
using test::FoundLog;
using test::is_prefix;
using test::what_is_thrown_by;

/// Of three members.
struct Durable : testing::Test {
  DurableGroup::Disks disks = DurableGroup::make_disks(3, 1);
  DurableGroup group{disks, 1};
};

TEST_F(Durable, DeliversEverywhereInOneOrderAndLogsIt) {
  group.send(40);
  ASSERT_TRUE(group.run_until_all_delivered(120));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(group.members[i].delivered, group.members[0].delivered);
    disks[i]->crash();  // at the very moment of the last delivery
    EXPECT_EQ(test::read_log(*disks[i]).messages, group.members[0].delivered);
  }
}

TEST_F(Durable, CommitsTogetherWhatComesWhileTheDiskIsBusy) {
  group.send(200);
  ASSERT_TRUE(group.run_until_all_delivered(600));
  for (const DurableMember& member : group.members)
    EXPECT_LT(member.cast->counters().log_commits, 100);
}

TEST_F(Durable, IsQuietWhenNobodySends) {
  group.send(5);
  ASSERT_TRUE(group.run_until_all_delivered(15));
  group.world.run_for(10'000'000);
  const auto writes = [&] {
    std::uint64_t sum = 0;
    for (const DurableMember& member : group.members)
      sum += member.cast->counters().pushes + member.cast->counters().log_commits;
    return sum;
  };
  const std::uint64_t before = writes();
  group.world.run_for(50'000'000);
  EXPECT_EQ(writes(), before);
}

TEST_F(Durable, WaitsForTheSlowestDisk) {
  disks[2]->latency(3'000'000, 3'000'000);
  group.send(1);
  group.world.run_for(2'900'000);
  for (const DurableMember& member : group.members) EXPECT_TRUE(member.delivered.empty());
  ASSERT_TRUE(group.run_until_all_delivered(3));
}

TEST_F(Durable, GoesOnWithoutAMemberWhoseDiskIsFull) {
  disks[1]->capacity(9'000);
  group.send(60);
  ASSERT_TRUE(group.world.run_until(
      [&] { return group.members[0].views.size() == 2 && !group.members[1].error.empty(); },
      1'000'000'000));
  EXPECT_TRUE(contains(group.members[1].error, "this member leaves the group: log 'sim/orders': "));
  EXPECT_TRUE(contains(group.members[1].error, "'log/0000000000000001.log': writing "));
  EXPECT_TRUE(contains(group.members[1].error, "No space left on device"));
  ASSERT_TRUE(group.run_until_all_delivered(120));
  EXPECT_EQ(group.members[0].delivered, group.members[2].delivered);
  EXPECT_TRUE(is_prefix(group.members[1].delivered, group.members[0].delivered));
  disks[1]->crash();
  const FoundLog full = test::read_log(*disks[1]);
  EXPECT_TRUE(is_prefix(group.members[1].delivered, full.messages));
}

TEST_F(Durable, StopsAtAFailedSync) {
  group.send(10);
  ASSERT_TRUE(group.run_until_all_delivered(30));
  disks[0]->fail_next_sync();
  group.send(10);
  ASSERT_TRUE(
      group.world.run_until([&] { return group.members[1].views.size() == 2; }, 1'000'000'000));
  EXPECT_TRUE(contains(group.members[0].error, "fdatasync"));
  ASSERT_TRUE(group.run_until_all_delivered(50));
}

TEST(DurableGroup, NoticesAFailedLogThoughNothingElseHappens) {
  auto disks = DurableGroup::make_disks(1, 1);
  DurableGroup group(disks, 1);
  group.send(1);
  ASSERT_TRUE(group.run_until_all_delivered(1));
  disks[0]->fail_next_sync();
  group.send(1);
  EXPECT_TRUE(group.world.run_until([&] { return !group.members[0].error.empty(); }, 100'000'000));
}

/// With a quorum of logs the last member cannot go on alone (MC-Q2); if the others have left as
/// they asked, that is no error.
struct DurableByQuorum : testing::Test {
  void SetUp() override {
    group.send(20);
    ASSERT_TRUE(group.run_until_all_delivered(60));
  }
  void leave(Rank rank) {
    group.world.on(rank, [this, rank] { group.members[rank].group->leave(); });
    ASSERT_TRUE(run_until_ended(rank));
    EXPECT_NO_THROW(group.members[rank].group->check());
    group.members[rank].dead = true;
  }
  bool run_until_ended(Rank rank) {
    return group.world.run_until([this, rank] { return group.members[rank].group->ended(); },
                                 1'000'000'000);
  }
  DurableGroup::Disks disks = DurableGroup::make_disks(3, 1);
  DurableGroup group{disks, 1, "a", sim::profile("ib100"), {}, {}, true};
};

TEST_F(DurableByQuorum, IsStoppedByLeavesOneAfterTheOther) {
  leave(0);
  group.send(5);
  ASSERT_TRUE(group.run_until_all_delivered(70));
  leave(1);
  DurableMember& last = group.members[2];
  ASSERT_TRUE(run_until_ended(2));
  EXPECT_EQ(last.error, "");
  EXPECT_NO_THROW(last.group->check());
  EXPECT_TRUE(contains(last.cast->why_left(), "the other members have left"))
      << last.cast->why_left();
  EXPECT_EQ(last.cast->send({}), multicast::SendResult::ended);
}

TEST_F(DurableByQuorum, StopsWithAnErrorIfAMemberThatItNeedsHasFailed) {
  leave(0);
  group.crash(1);
  DurableMember& last = group.members[2];
  ASSERT_TRUE(run_until_ended(2));
  EXPECT_TRUE(contains(last.error, "are no quorum of it, so this member stops")) << last.error;
  EXPECT_EQ(last.cast->why_left(), "");
}

TEST(DurableGroup, ReplaysItsLogAndGoesOnBehindIt) {
  auto disks = DurableGroup::make_disks(3, 1);
  std::vector<std::string> all;
  for (const std::string run : {"a", "b", "c"}) {
    DurableGroup group(disks, 1, run);
    group.send(20);
    ASSERT_TRUE(group.run_until_all_delivered(60));
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(group.members[i].replayed, all);
      EXPECT_EQ(group.members[i].delivered, group.members[0].delivered);
    }
    all.insert(all.end(), group.members[0].delivered.begin(), group.members[0].delivered.end());
    for (auto& disk : disks) disk->crash();
  }
  EXPECT_EQ(test::read_log(*disks[0]).view(), 3);
}

TEST(DurableGroup, NeedsADirectoryForItsLog) {
  sim::World world(sim::profile("ideal"), 1, 1);
  Group group(world.fabric(0), {.subgroups = {{.name = "orders"}}});
  EXPECT_TRUE(contains(
      what_is_thrown_by([&] { Multicast(group, "orders", {.mode = multicast::Mode::durable}); }),
      "subgroup 'orders': a durable one needs a directory for its log"));
  EXPECT_TRUE(contains(
      what_is_thrown_by([&] { Multicast(group, "orders", {.log_directory = "somewhere"}); }),
      "log_directory, log_given_up, log_trim and log_quorum are for the mode durable only"));
  EXPECT_TRUE(contains(
      what_is_thrown_by([&] { Multicast(group, "orders", {.log_given_up = {"a"}}); }),
      "log_directory, log_given_up, log_trim and log_quorum are for the mode durable only"));
  EXPECT_TRUE(contains(what_is_thrown_by([&] {
                         Multicast(
                             group, "orders",
                             {.mode = multicast::Mode::durable, .log_directory = "/proc/no/such"});
                       }),
                       "/proc/no/such"));
}

/// On real files, with a thread that syncs them.
TEST(DurableGroup, KeepsItsLogInFiles) {
  const test::OwnDirectory directory;
  for (int run = 0; run < 2; ++run) {
    sim::World world(sim::profile("ideal"), 1, 1);
    Group group(world.fabric(0), {.subgroups = {{.name = "orders"}}});
    Multicast orders(group, "orders",
                     {.mode = multicast::Mode::durable, .log_directory = directory / "log"});
    std::uint64_t before = 0;
    orders.on_replay([&](const multicast::Logged& logged) {
      EXPECT_EQ(logged.message.size(), 3);
      EXPECT_EQ(logged.sender, "node0");
      EXPECT_EQ(logged.view, 1);
      ++before;
    });
    std::uint64_t delivered = 0;
    orders.on_delivery(
        [&](std::span<const multicast::Delivery> batch) { delivered += batch.size(); });
    std::uint64_t sent = 0;
    while (delivered < 100) {
      if (sent < 100 &&
          orders.send(std::as_bytes(std::span("abc", 3))) == multicast::SendResult::sent)
        ++sent;
      world.on(0, [&] { group.poll(); });
      world.run_for(1'000);
    }
    EXPECT_EQ(before, run * 100);
  }
}

}  // namespace
}  // namespace dunlin

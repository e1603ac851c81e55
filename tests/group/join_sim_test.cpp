#include <memory>
#include <string>

#include "group/cluster_fixture.hpp"
#include "group/control_channel.hpp"
#include "group/control_message.hpp"
#include "support/errors.hpp"

/// Members that come into a group at work, in the simulator.
namespace dunlin {
namespace {

using test::ClusterFixture;
using test::contains;
using test::what_is_thrown_by;

/// GRP-N5 says who is in that view, and in which order.
TEST(JoiningInSimulator, BringsANodeIntoTheNextView) {
  ClusterFixture cluster(2, 1);
  ASSERT_TRUE(cluster.until_view_of({0, 1}));
  cluster[2].come();
  ASSERT_TRUE(cluster.until_view_of({0, 1, 2}));
  for (Rank node = 0; node < 3; ++node) {
    EXPECT_EQ(cluster[node].group->view().number, 2U);
    EXPECT_EQ(cluster[node].group->view().joined, std::vector<std::string>{"node2"});
    EXPECT_TRUE(cluster[node].group->view().departed.empty());
    EXPECT_EQ(cluster[node].group->view().me, node);
  }
  EXPECT_EQ(cluster[2].views.size(), 1U);
}

/// GRP-S2 promises what this test checks.
TEST(JoiningInSimulator, GivesItWhatWasDeliveredAndThenTheRestInTheSameOrder) {
  for (const bool by_next : {false, true}) {
    ClusterFixture cluster(2, 1, 1, {.ring_bytes = 4096});
    if (by_next)
      for (const auto& cluster_node : cluster.cluster_nodes) cluster_node->by_next();
    cluster[0].send(100);
    ASSERT_TRUE(cluster.until_view_of({0, 1}, 100));
    for (Rank node = 0; node < 2; ++node) cluster[node].send(2'000);
    cluster[2].come();
    cluster[2].send(50);
    ASSERT_TRUE(cluster.until_view_of({0, 1, 2}, 4'150)) << by_next << cluster.text();
    EXPECT_EQ(cluster[2].history.size(), 4'150U);
    EXPECT_EQ(cluster[2].loads, 1U);
    EXPECT_EQ(cluster[0].loads, 0U);
  }
}

TEST(JoiningInSimulator, SendsOnlyOnceItHasItsState) {
  ClusterFixture cluster(2, 1);
  cluster[0].send(1'000);
  cluster[2].send(100);
  cluster[2].come();
  ASSERT_TRUE(cluster.until_view_of({0, 1, 2}, 1'100)) << cluster.text();
  EXPECT_EQ(cluster[2].loads, 1U);
  EXPECT_FALSE(cluster[2].sent_without_state);
}

TEST(JoiningInSimulator, TakesSeveralAtOnce) {
  ClusterFixture cluster(2, 5);
  cluster[1].send(10);
  ASSERT_TRUE(cluster.until_view_of({0, 1}, 10));
  for (Rank node = 2; node < 7; ++node) cluster[node].come();
  ASSERT_TRUE(cluster.until([&] {
    return std::ranges::all_of(cluster.cluster_nodes, [](const auto& cluster_node) {
      return cluster_node->group && cluster_node->group->view().members.size() == 7 &&
             cluster_node->history.size() == 10;
    });
  })) << cluster.text();
  EXPECT_LT(cluster[0].group->view().number, 7U);
}

TEST(JoiningInSimulator, FoundsAGroupFromOneMember) {
  ClusterFixture cluster(1, 2);
  cluster[0].send(5);
  cluster[1].come();
  ASSERT_TRUE(cluster.until_view_of({0, 1}, 5));
  cluster[2].come();
  ASSERT_TRUE(cluster.until_view_of({0, 1, 2}, 5)) << cluster.text();
  cluster.world.crash(0);  // the only one of the beginning
  ASSERT_TRUE(cluster.until_view_of({1, 2}, 5));
  cluster[2].send(3);
  ASSERT_TRUE(cluster.until_view_of({1, 2}, 8));
}

TEST(JoiningInSimulator, LetsWhoCameLeaveAgain) {
  ClusterFixture cluster(2, 1);
  cluster[2].come();
  ASSERT_TRUE(cluster.until_view_of({0, 1, 2}));
  cluster[2].group->leave();
  ASSERT_TRUE(cluster.until([&] { return cluster[2].group->ended(); }));
  ASSERT_TRUE(cluster.until_view_of({0, 1}));
  cluster[0].send(3);
  ASSERT_TRUE(cluster.until_view_of({0, 1}, 3));
}

TEST(JoiningInSimulator, OutlastsTheLeaderAtAnyMoment) {
  for (std::uint64_t moment_ns = 1'000; moment_ns < 400'000; moment_ns += 7'000) {
    ClusterFixture cluster(3, 1, moment_ns);
    cluster[0].send(20);
    ASSERT_TRUE(cluster.until_view_of({0, 1, 2}, 20));
    cluster[3].come();
    cluster.world.run_for(moment_ns);
    cluster.world.crash(0);
    ASSERT_TRUE(cluster.until_view_of({1, 2, 3}, 20)) << "crash after " << moment_ns << " ns\n"
                                                      << cluster.text();
    EXPECT_EQ(cluster[3].loads, 1U);
  }
}

TEST(JoiningInSimulator, LeavesTheGroupAsItIsIfTheOneWhoComesDiesAtAnyMoment) {
  for (std::uint64_t moment_ns = 1'000; moment_ns < 400'000; moment_ns += 7'000) {
    ClusterFixture cluster(3, 1, moment_ns);
    ASSERT_TRUE(cluster.until_view_of({0, 1, 2}));
    cluster[3].come();
    cluster.world.run_for(moment_ns);
    cluster.world.crash(3);
    cluster[1].send(20);
    cluster.world.run_for(5'000'000);
    ASSERT_TRUE(cluster.until_view_of({0, 1, 2}, 20)) << "crash after " << moment_ns << " ns\n"
                                                      << cluster.text();
  }
}

/// By GRP-N1 the leader compares the hash, and refuses with a reason.
TEST(JoiningInSimulator, RefusesWhoDeclaresOtherSubgroups) {
  ClusterFixture cluster(2, 1);
  GroupOptions other = cluster[2].group_options();
  other.subgroups.push_back({.name = "more"});
  cluster[2].come(std::move(other));
  ASSERT_TRUE(cluster.until([&] { return !cluster[2].error.empty(); }));
  EXPECT_TRUE(contains(cluster[2].error,
                       "group 'sim' refuses the member 'node2': it declares other "
                       "subgroups"))
      << cluster[2].error;
}

TEST(JoiningInSimulator, GivesUpWhereThereIsNoGroup) {
  ClusterFixture cluster(1, 1);
  cluster.world.crash(0);
  cluster[1].come();
  ASSERT_TRUE(cluster.until([&] { return !cluster[1].error.empty(); }, 2'000'000'000));
  EXPECT_TRUE(contains(cluster[1].error, "could not come in within 1000 ms")) << cluster[1].error;
}

/// Others than GroupEntry may connect, too.
TEST(JoiningInSimulator, RefusesWhoHasANameThatNoMemberCanHave) {
  ClusterFixture cluster(1, 1);
  const auto place = cluster.world.rendezvous(1, "sim");
  const auto entry = place->connect();
  std::unique_ptr<Fabric> fabric;
  std::unique_ptr<group::ControlChannel> channel;
  std::string answer;
  cluster.world.attach(1, [&]() -> std::size_t {
    if (fabric == nullptr) {
      fabric = entry->poll();
      if (fabric == nullptr) return 0;
      channel = std::make_unique<group::ControlChannel>(*fabric);
      channel->send(0,
                    group::encode({.kind = group::ControlMessage::Kind::hello, .name = "no/name"}));
    }
    return fabric->poll() + channel->poll([&](Rank, std::vector<std::byte> bytes) {
      if (const auto message = group::decode(std::move(bytes))) answer = message->text;
    });
  });
  ASSERT_TRUE(cluster.until([&] { return !answer.empty(); }));
  EXPECT_TRUE(contains(answer, "'no/name'")) << answer;
}

TEST(GroupJoiner, TellsWhyTheListenerIsClosed) {
  struct Closed final : Rendezvous {
    const std::string& group() const noexcept override { return name; }
    std::unique_ptr<PendingEntry> enter() override { throw Error("not here"); }
    std::unique_ptr<PendingJoin> accept() override {
      if (++attempts <= 2) throw Error("the lock is stuck");
      return inner->accept();
    }
    std::unique_ptr<PendingJoin> connect() override { throw Error("not here"); }
    std::uint64_t now_ns() const override { return inner->now_ns(); }
    std::string name = "sim";
    std::shared_ptr<Rendezvous> inner;
    int attempts = 0;
  };
  sim::World world(sim::profile("ideal"), 1, 1);
  const auto place = std::make_shared<Closed>();
  place->inner = world.rendezvous(0, "sim");
  Group group(world.fabric(0), {.subgroups = {{.name = "log"}}, .rendezvous = place});
  Multicast log(group, "log");
  world.attach(0, [&] { return group.poll(); });
  ASSERT_TRUE(world.run_until([&] { return place->attempts == 1; }, 1'000'000'000));
  EXPECT_EQ(group.why_closed(), "the lock is stuck");
  ASSERT_TRUE(world.run_until([&] { return place->attempts == 3; }, 1'000'000'000));
  EXPECT_EQ(group.why_closed(), "");
}

TEST(GroupJoiner, NeedsARendezvous) {
  const std::string text = what_is_thrown_by([] { GroupEntry("x", {}); });
  EXPECT_TRUE(contains(text, "give that of the group, such as make_rendezvous()")) << text;
}

}  // namespace
}  // namespace dunlin

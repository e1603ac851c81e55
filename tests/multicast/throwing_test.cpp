#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/group/subgroup_participant.hpp>

#include "group/cluster_fixture.hpp"
#include "support/own_directory.hpp"

/// What user code throws comes out of poll(), and whoever polls again goes on as if it had not.
namespace dunlin {
namespace {

using test::ClusterFixture;

TEST(Throwing, OfAViewHandlerLeavesNothingUndone) {
  ClusterFixture cluster(2, 0);
  cluster[0].catches = true;
  cluster[0].group->on_view([&](const View& view) {
    cluster[0].views.push_back(view);
    throw std::runtime_error("the handler's");
  });
  cluster[0].send(10);
  cluster[1].send(10);
  ASSERT_TRUE(cluster.until_view_of({0, 1}, 20)) << cluster.text();
  EXPECT_EQ(cluster[0].caught, 1U);
}

TEST(Throwing, OfAMembersHandlerLeavesNothingUndone) {
  ClusterFixture cluster(2, 0);
  cluster[0].catches = true;
  cluster[0].multicast->on_members(
      [](const Subgroup&) { throw std::runtime_error("the handler's"); });
  cluster[0].send(10);
  cluster[1].send(10);
  ASSERT_TRUE(cluster.until_view_of({0, 1}, 20)) << cluster.text();
  EXPECT_EQ(cluster[0].caught, 1U);
}

/// What the others had sent is delivered at the end of the view, in several batches.
TEST(Throwing, OfAnUpcallWhileTheViewEndsLosesAndRepeatsNothing) {
  ClusterFixture cluster(3, 0);
  cluster[1].catches = true;
  cluster[1].multicast->on_delivery([&](std::span<const multicast::Delivery> batch) {
    for (const multicast::Delivery& delivery : batch)
      cluster[1].history.emplace_back(reinterpret_cast<const char*>(delivery.message.data()),
                                      delivery.message.size());
    if (cluster[1].views.size() == 1) throw std::runtime_error("the upcall's");
  });
  ASSERT_TRUE(cluster.until_view_of({0, 1, 2}));
  cluster.world.hang(2);  // so nothing is stable any more
  cluster[0].send(500);
  cluster[1].send(500);
  ASSERT_TRUE(cluster.until_view_of({0, 1}, 1'000)) << cluster.text();
  EXPECT_GE(cluster[1].caught, 1U);
  EXPECT_EQ(cluster[0].history.size(), 1'000U);
}

TEST(Throwing, OfAnUpcallIsFollowedByTheRest) {
  ClusterFixture cluster(2, 0);
  ASSERT_TRUE(cluster.until_view_of({0, 1}));
  cluster[1].catches = true;
  cluster[1].multicast->on_delivery([&](std::span<const multicast::Delivery> batch) {
    for (const multicast::Delivery& delivery : batch)
      cluster[1].history.emplace_back(reinterpret_cast<const char*>(delivery.message.data()),
                                      delivery.message.size());
    throw std::runtime_error("the upcall's");
  });
  cluster[0].send(1'000);
  ASSERT_TRUE(cluster.until_view_of({0, 1}, 1'000)) << cluster.text();
  EXPECT_GE(cluster[1].caught, 4U);
}

TEST(Throwing, OfWhoShouldGiveItsStateSendsTheOtherElsewhere) {
  ClusterFixture cluster(2, 1);
  cluster[0].catches = true;
  cluster[0].multicast->on_state(
      []() -> std::vector<std::byte> { throw std::runtime_error("the state's"); },
      [](std::span<const std::byte>) {});
  cluster[0].send(10);
  ASSERT_TRUE(cluster.until_view_of({0, 1}, 10)) << cluster.text();
  cluster[2].come();
  ASSERT_TRUE(cluster.until_view_of({0, 1, 2}, 10)) << cluster.text();
  EXPECT_EQ(cluster[0].caught, 1U);
  EXPECT_EQ(cluster[2].loads, 1U);
}

TEST(Throwing, OfWhoTakesAStateEndsItsMembershipWithoutADelivery) {
  ClusterFixture cluster(2, 1);
  cluster[2].catches = cluster[2].fails_to_load = true;
  cluster[0].send(10);
  ASSERT_TRUE(cluster.until_view_of({0, 1}, 10)) << cluster.text();
  cluster[2].come();
  ASSERT_TRUE(cluster.until([&] { return cluster[2].group && cluster[2].group->ended(); }))
      << cluster.text();
  cluster[0].send(10);
  ASSERT_TRUE(cluster.until_view_of({0, 1}, 20)) << cluster.text();
  EXPECT_EQ(cluster[2].loads, 1U);
  EXPECT_EQ(cluster[2].caught, 1U);
  EXPECT_TRUE(cluster[2].history.empty());
}

/// In view 1 there would be nothing yet to poll.
TEST(Throwing, IsWhatPollDoesInAnUpcall) {
  ClusterFixture cluster(2, 0);
  std::uint32_t refused = 0;
  const auto poll = [&] {
    EXPECT_THROW((void)cluster[0].group->poll(), Error);
    ++refused;
  };
  cluster[0].group->on_view([&](const View& view) {
    cluster[0].views.push_back(view);
    poll();
  });
  cluster[0].multicast->on_delivery([&](std::span<const multicast::Delivery> batch) {
    cluster[0].history.resize(cluster[0].history.size() + batch.size());
    poll();
  });
  cluster[1].multicast->on_delivery([&](std::span<const multicast::Delivery> batch) {
    cluster[1].history.resize(cluster[1].history.size() + batch.size());
  });
  cluster[1].send(10);
  ASSERT_TRUE(cluster.until_view_of({0, 1}, 10)) << cluster.text();
  EXPECT_GE(refused, 2U);
}

TEST(ViewHandler, CanBeTakenAway) {
  ClusterFixture cluster(2, 0);
  cluster[0].group->on_view(nullptr);
  ASSERT_TRUE(cluster.until([&] { return !cluster[1].views.empty(); }));
  EXPECT_TRUE(cluster[0].views.empty());
  EXPECT_EQ(cluster[0].group->view().number, 1U);
}

TEST(Throwing, OfAPartThatCannotBeginEndsTheGroup) {
  class NoPart final : public SubgroupParticipant {
   public:
    void begin(Fabric&, const Subgroup&) override { throw Error("no memory, say"); }
    std::size_t poll() override {
      ADD_FAILURE() << "it has not begun";
      return 0;
    }
    void wedge() noexcept override {}
    std::span<const std::uint64_t> received() const noexcept override { return {}; }
    void finish(std::span<const std::uint64_t>, std::span<const Rank>) override {}
  };
  sim::World world(sim::profile("ideal"), 1, 1);
  Group group(world.fabric(0), {.subgroups = {{.name = "all"}}});
  NoPart part;
  group.attach("all", part);
  EXPECT_THROW((void)group.poll(), Error);
  world.attach(0, [&] { return group.poll(); });
  EXPECT_TRUE(world.run_until([&] { return group.ended(); }, 1'000'000));
  EXPECT_NE(group.why_ended().find("'all' could not begin view 1: no memory, say"),
            std::string::npos)
      << group.why_ended();
}

TEST(Throwing, OfAReplayIsFollowedByTheNextMessage) {
  const test::OwnDirectory directory;
  std::vector<std::string> replayed;
  for (const bool again : {false, true}) {
    sim::World world(sim::profile("ideal"), 1, 1);
    Group group(world.fabric(0), {.subgroups = {{.name = "orders"}}});
    Multicast orders(group, "orders",
                     {.mode = multicast::Mode::durable, .log_directory = directory / "log"});
    orders.on_replay([&](const multicast::Logged& logged) {
      replayed.emplace_back(reinterpret_cast<const char*>(logged.message.data()),
                            logged.message.size());
      throw std::runtime_error("the upcall's");
    });
    std::size_t delivered = 0;
    orders.on_delivery(
        [&](std::span<const multicast::Delivery> batch) { delivered += batch.size(); });
    std::size_t sent = 0;
    const std::vector<std::string> messages = {"aaa", "bbb", "ccc"};
    while (again ? replayed.size() < messages.size() : delivered < messages.size()) {
      world.on(0, [&] {
        try {
          group.poll();
        } catch (const std::runtime_error& error) {
          EXPECT_STREQ(error.what(), "the upcall's");
        }
        if (!again && sent < messages.size() &&
            orders.send(std::as_bytes(std::span(messages[sent]))) == multicast::SendResult::sent)
          ++sent;
      });
      world.run_for(1'000);
    }
  }
  EXPECT_EQ(replayed, (std::vector<std::string>{"aaa", "bbb", "ccc"}));
}

}  // namespace
}  // namespace dunlin

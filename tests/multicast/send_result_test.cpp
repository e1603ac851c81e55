#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group/subgroup_participant.hpp>
#include <dunlin/multicast.hpp>

#include "group/cluster_fixture.hpp"
#include "group/sim_groups.hpp"

/// Each result of Multicast::send(), and that only `sent` takes the message.
namespace dunlin {
namespace {

using multicast::SendResult;
using test::ClusterFixture;

/// One node's group of two subgroups: "log", in which only node 0 sends, and "other".
class Sender {
 public:
  Sender(sim::World& world, Rank node)
      : group(world.fabric(node),
              {.subgroups = {{.name = "log", .senders = {"node0"}}, {.name = "other"}}}),
        log(group, "log", {.ring_bytes = 4096}) {
    log.on_delivery(
        [this](std::span<const multicast::Delivery> batch) { delivered += batch.size(); });
  }
  SendResult send(std::size_t bytes = 8) { return log.send(std::vector<std::byte>(bytes)); }

  Group group;
  Multicast log;
  std::size_t delivered = 0;
};

class SendingTwo : public testing::Test {
 protected:
  SendingTwo() {
    for (Rank node = 0; node < 2; ++node) {
      senders.push_back(std::make_unique<Sender>(world, node));
      senders.back()->group.attach("other", others.at(node));
    }
  }
  void poll(Rank node) {
    world.attach(node, [this, node] { return senders[node]->group.poll(); });
  }
  bool until_ended(Rank node) {
    return world.run_until([&] { return senders[node]->group.ended(); }, 100'000'000);
  }

  sim::World world{sim::profile("ib100"), 2, 1};
  std::array<test::ScriptedParticipant, 2> others;
  std::vector<std::unique_ptr<Sender>> senders;
};

TEST_F(SendingTwo, IsWedgedBeforeTheFirstView) {
  EXPECT_EQ(senders[0]->send(), SendResult::wedged);
  poll(0);
  world.run_for(1'000'000);
  EXPECT_EQ(senders[0]->send(), SendResult::sent);
}

TEST_F(SendingTwo, HasNoRoomWhileAnotherMemberDeliversNothing) {
  poll(0);
  world.run_for(1'000'000);
  std::size_t sent = 0;
  while (senders[0]->send(100) == SendResult::sent) ++sent;
  EXPECT_EQ(senders[0]->send(100), SendResult::no_room);
  poll(1);
  EXPECT_TRUE(world.run_until([&] { return senders[1]->delivered == sent; }, 100'000'000));
  EXPECT_EQ(senders[0]->send(100), SendResult::sent);
}

TEST_F(SendingTwo, SaysThatAMemberIsNoSender) {
  poll(0);
  poll(1);
  world.run_for(1'000'000);
  EXPECT_EQ(senders[1]->send(), SendResult::not_a_sender);
}

TEST_F(SendingTwo, IsWedgedWhileAViewEnds) {
  poll(0);
  poll(1);
  world.run_for(1'000'000);
  ASSERT_EQ(senders[0]->send(), SendResult::sent);
  others[0].on_finish = [&] { EXPECT_EQ(senders[0]->send(), SendResult::wedged); };
  world.on(1, [&] { senders[1]->group.leave(); });
  ASSERT_TRUE(until_ended(1));
  EXPECT_EQ(others[0].trims.size(), 1U);
  EXPECT_EQ(senders[0]->send(), SendResult::sent);
}

TEST_F(SendingTwo, SaysThatTheGroupHasEnded) {
  poll(0);
  poll(1);
  world.run_for(1'000'000);
  world.on(0, [&] { senders[0]->group.leave(); });
  ASSERT_TRUE(until_ended(0));
  EXPECT_EQ(senders[0]->send(), SendResult::ended);
  EXPECT_EQ(senders[1]->send(), SendResult::not_a_sender);
}

/// The multicast had begun the view when the other part could not.
TEST_F(SendingTwo, SaysThatTheGroupHasEndedAlsoIfAnotherPartEndedIt) {
  others[0].fails_to_begin = true;
  world.attach(0, [&]() -> std::size_t {
    try {
      return senders[0]->group.poll();
    } catch (const Error&) {
      return 1;
    }
  });
  ASSERT_TRUE(until_ended(0));
  EXPECT_EQ(senders[0]->send(), SendResult::ended);
}

TEST_F(SendingTwo, IsToldOfRoomOnceAfterARefusal) {
  poll(0);
  world.run_for(1'000'000);
  std::size_t calls = 0;
  senders[0]->log.on_room([&] {
    ++calls;
    EXPECT_TRUE(senders[0]->log.has_room(100));
    EXPECT_EQ(senders[0]->send(100), SendResult::sent);
  });
  std::size_t sent = 0;
  while (senders[0]->send(100) == SendResult::sent) ++sent;
  EXPECT_EQ(senders[0]->log.prepare(100).data(), nullptr);
  EXPECT_FALSE(senders[0]->log.has_room(100));
  world.run_for(1'000'000);
  EXPECT_EQ(calls, 0U) << "the other member has delivered nothing";
  poll(1);
  EXPECT_TRUE(world.run_until([&] { return senders[1]->delivered == sent + 1; }, 100'000'000));
  world.run_for(1'000'000);
  EXPECT_EQ(calls, 1U);
}

TEST_F(SendingTwo, IsToldOfRoomForAMessageInPlace) {
  poll(0);
  world.run_for(1'000'000);
  std::size_t calls = 0;
  senders[0]->log.on_room([&] {
    ++calls;
    const std::span<std::byte> room = senders[0]->log.prepare(100);
    ASSERT_NE(room.data(), nullptr);
    senders[0]->log.commit();
  });
  EXPECT_EQ(senders[0]->log.prepare(senders[0]->log.largest_in_place() + 1).data(), nullptr);
  world.run_for(1'000'000);
  EXPECT_EQ(calls, 0U) << "polling does not end that refusal";
  std::size_t sent = 0;
  for (; senders[0]->log.prepare(100).data() != nullptr; ++sent) senders[0]->log.commit();
  poll(1);
  EXPECT_TRUE(world.run_until([&] { return senders[1]->delivered == sent + 1; }, 100'000'000));
  EXPECT_EQ(calls, 1U);
}

TEST_F(SendingTwo, IsToldOfRoomInTheFirstView) {
  std::size_t calls = 0;
  senders[0]->log.on_room([&] {
    ++calls;
    EXPECT_EQ(senders[0]->send(), SendResult::sent);
  });
  EXPECT_EQ(senders[0]->send(), SendResult::wedged);
  poll(0);
  poll(1);
  EXPECT_TRUE(world.run_until([&] { return senders[1]->delivered == 1; }, 100'000'000));
  EXPECT_EQ(calls, 1U);
}

TEST_F(SendingTwo, GetsFromPollWhatTheHandlerOfRoomThrows) {
  senders[0]->log.on_room([] { throw Error("no more today"); });
  EXPECT_EQ(senders[0]->send(), SendResult::wedged);
  std::vector<std::string> thrown;
  world.attach(0, [&]() -> std::size_t {
    try {
      return senders[0]->group.poll();
    } catch (const Error& e) {
      thrown.emplace_back(e.what());
      return 1;
    }
  });
  world.run_for(1'000'000);
  ASSERT_EQ(thrown.size(), 1U);
  EXPECT_EQ(thrown[0], "no more today");
  EXPECT_EQ(senders[0]->send(), SendResult::sent);
}

TEST(SendingInSimulator, WaitsForTheStateOfAMemberThatComesIn) {
  ClusterFixture cluster(2, 1);
  cluster[0].send(1'000);
  cluster[2].send(10);
  cluster[2].come();
  ASSERT_TRUE(cluster.until_view_of({0, 1, 2}, 1'010)) << cluster.text();
  EXPECT_TRUE(cluster[2].results.contains(SendResult::waiting_for_state));
  EXPECT_FALSE(cluster[0].results.contains(SendResult::waiting_for_state));
}

}  // namespace
}  // namespace dunlin

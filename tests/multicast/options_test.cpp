#include <array>
#include <cstddef>
#include <ostream>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "group/cluster_fixture.hpp"
#include "support/errors.hpp"

/// Members of a subgroup whose programs do not agree: one leaves and says why, the others go on.
namespace dunlin {
namespace {

using test::ClusterNode;
using test::contains;
using test::what_is_thrown_by;

struct Odd {
  std::string name;
  MulticastOptions options;
  std::string said;
  friend void PrintTo(const Odd& odd, std::ostream* out) { *out << odd.name; }
};

class OddOptions : public testing::TestWithParam<Odd> {
 protected:
  void make(Rank node, bool odd = false) {
    cluster_nodes.push_back(std::make_unique<ClusterNode>(
        world, node, odd ? GetParam().options : MulticastOptions{.ring_bytes = 1U << 16}));
    cluster_nodes.back()->catches = true;
  }
  bool until_delivered(std::size_t messages) {
    return world.run_until(
        [&] {
          return cluster_nodes[0]->history.size() == messages &&
                 cluster_nodes[1]->history.size() == messages;
        },
        100'000'000);
  }
  void expect_left(ClusterNode& cluster_node) {
    ASSERT_TRUE(world.run_until(
        [&] { return cluster_node.group != nullptr && cluster_node.group->ended(); }, 100'000'000));
    EXPECT_TRUE(contains(cluster_node.error,
                         "this member leaves the group: its MulticastOptions are not those of the "
                         "subgroup's first member: subgroup 'log': "))
        << cluster_node.error;
    EXPECT_TRUE(contains(cluster_node.error, GetParam().said)) << cluster_node.error;
  }

  sim::World world{sim::profile("ib100"), 3, 1};
  std::vector<std::unique_ptr<ClusterNode>> cluster_nodes;
};

INSTANTIATE_TEST_SUITE_P(
    , OddOptions,
    testing::Values(
        Odd{"ring", {.ring_bytes = 4096}, "'ring_bytes' is '65536' there and '4096' here"},
        Odd{"mode",
            {.mode = multicast::Mode::unordered, .ring_bytes = 1U << 16},
            "'ordered' there is 'unordered' here"},
        Odd{"window",
            {.ring_bytes = 1U << 16, .window_messages = 2},
            "'window_messages' is '0' there and '2' here"},
        Odd{"slots",
            {.ring_bytes = 1U << 16, .switches = {.used_bytes_only = false, .slot_bytes = 256}},
            "'slot_bytes' is '0' there and '256' here"},
        Odd{"line",
            {.ring_bytes = 1U << 16, .switches = {.one_cache_line = false}},
            "'without one_cache_line' is only here"}),
    [](const auto& odd) { return odd.param.name; });

TEST_P(OddOptions, OfAFounderMakeItLeave) {
  for (Rank node = 0; node < 3; ++node) make(node, node == 2);
  for (auto& cluster_node : cluster_nodes) cluster_node->found();
  cluster_nodes[0]->send(10);
  cluster_nodes[1]->send(10);
  expect_left(*cluster_nodes[2]);
  EXPECT_TRUE(until_delivered(20));
}

TEST_P(OddOptions, OfWhoComesInMakeItLeave) {
  for (Rank node = 0; node < 3; ++node) make(node);
  for (auto& cluster_node : cluster_nodes) cluster_node->found();
  cluster_nodes[0]->send(10);
  ASSERT_TRUE(until_delivered(10));
  make(world.add_node(), true);
  cluster_nodes[3]->come();
  expect_left(*cluster_nodes[3]);
  EXPECT_EQ(cluster_nodes[3]->views.size(), 1U);
  cluster_nodes[1]->send(10);
  EXPECT_TRUE(until_delivered(20));
}

TEST(NoState, AtTheOthersMakesWhoWaitsForOneLeave) {
  sim::World world(sim::profile("ib100"), 2, 1);
  std::vector<std::unique_ptr<ClusterNode>> cluster_nodes;
  for (Rank node = 0; node < 2; ++node) {
    cluster_nodes.push_back(std::make_unique<ClusterNode>(world, node));
    cluster_nodes.back()->saves_nothing();
    cluster_nodes.back()->found();
  }
  cluster_nodes[0]->send(10);
  ASSERT_TRUE(world.run_until([&] { return cluster_nodes[1]->history.size() == 10; }, 100'000'000));
  ClusterNode newcomer(world, world.add_node());
  newcomer.catches = true;
  newcomer.come();
  ASSERT_TRUE(
      world.run_until([&] { return newcomer.group && newcomer.group->ended(); }, 100'000'000));
  EXPECT_TRUE(
      contains(newcomer.error,
               "subgroup 'log': this member needs a state, and the member that it asked has "
               "no `save` handler: call on_state at all members"))
      << newcomer.error;
  EXPECT_EQ(newcomer.loads, 0U);
  cluster_nodes[1]->send(10);
  EXPECT_TRUE(world.run_until([&] { return cluster_nodes[0]->history.size() == 20; }, 100'000'000));
}

/// Each would lose messages, or be without effect.
TEST(Handlers, AreRefusedOnceTheFirstViewHasBegun) {
  sim::World world(sim::profile("ib100"), 2, 1);
  ClusterNode with_upcall(world, 0);
  ClusterNode by_next(world, 1);
  by_next.by_next();
  with_upcall.found();
  by_next.found();
  with_upcall.send(10);
  ASSERT_TRUE(world.run_until([&] { return by_next.history.size() == 10; }, 100'000'000));
  const auto nothing = [](std::span<const multicast::Delivery>) {};
  EXPECT_TRUE(contains(what_is_thrown_by([&] { by_next.multicast->on_delivery(nothing); }),
                       "subgroup 'log': on_delivery comes too late"));
  EXPECT_TRUE(contains(what_is_thrown_by([&] { with_upcall.multicast->on_delivery(nullptr); }),
                       "on_delivery comes too late"));
  EXPECT_TRUE(contains(what_is_thrown_by([&] { by_next.multicast->on_state({}, {}); }),
                       "on_state comes too late"));
  EXPECT_TRUE(contains(what_is_thrown_by([&] { by_next.multicast->on_replay({}); }),
                       "on_replay comes too late"));
  EXPECT_TRUE(contains(what_is_thrown_by([&] { (void)with_upcall.multicast->next(); }),
                       "next() cannot be used after on_delivery() was set"));

  std::string said;
  with_upcall.multicast->on_delivery([&](auto) {
    said = what_is_thrown_by([&] { with_upcall.multicast->on_delivery(nothing); });
  });
  with_upcall.send(1);
  ASSERT_TRUE(world.run_until([&] { return !said.empty(); }, 100'000'000));
  EXPECT_TRUE(contains(said, "on_delivery in the upcall that it would replace"));
  with_upcall.multicast->on_delivery(nothing);
}

TEST(NoPart, OfASubgroupThatAMemberIsInMakesItLeave) {
  sim::World world(sim::profile("ib100"), 2, 1);
  ClusterNode with(world, 0);
  with.found();
  with.send(10);
  Group without(world.fabric(1), with.group_options());
  std::string error;
  world.attach(1, [&]() -> std::size_t {
    try {
      return without.poll();
    } catch (const Error& e) {
      error = e.what();
      return 1;
    }
  });
  ASSERT_TRUE(world.run_until([&] { return without.ended(); }, 100'000'000));
  EXPECT_TRUE(contains(error, "subgroup 'log' has no participant here: make its Multicast"))
      << error;
  EXPECT_TRUE(
      contains(without.why_ended(), "its participant of subgroup 'log' could not begin view 1"))
      << without.why_ended();
}

TEST(LongNames, OfAFurtherGroupAndItsSubgroupFitTogether) {
  sim::World world(sim::profile("ib100"), 1, 1);
  const Group all(world.fabric(0));
  const std::string name(kMaxSubgroupNameBytes, 's');
  Group control(world.fabric(0),
                {.subgroups = {{.name = name}},
                 .further = FurtherGroup{.name = std::string(kMaxFurtherGroupNameBytes, 'g'),
                                         .members = {"node0"},
                                         .channel = 7}});
  Multicast multicast(control, name);
  std::size_t delivered = 0;
  multicast.on_delivery(
      [&](std::span<const multicast::Delivery> batch) { delivered += batch.size(); });
  bool sent = false;
  world.attach(0, [&] {
    const std::size_t done = control.poll();
    sent = sent || multicast.send(std::array<std::byte, 8>{}) == multicast::SendResult::sent;
    return done;
  });
  EXPECT_TRUE(world.run_until([&] { return delivered == 1; }, 100'000'000)) << control.why_ended();
  world.detach_all(0);
}

}  // namespace
}  // namespace dunlin

#include <dunlin/group_members.hpp>

#include "group/sim_groups.hpp"
#include "support/errors.hpp"

/// Two groups on one fabric: GRP-F1 to GRP-F4 of docs/group.md.
namespace dunlin {
namespace {

using test::ScriptedParticipant;
using test::SimGroups;

void expect_error(const std::function<void()>& action, const std::string& part) {
  EXPECT_TRUE(test::contains(test::what_is_thrown_by(action), part));
}

FurtherGroup control_of(std::vector<std::string> members) {
  return {.name = "control", .members = std::move(members), .channel = 7};
}

struct FurtherNode {
  std::unique_ptr<Group> group;
  ScriptedParticipant participant;
  std::vector<View> views;
};

/// The fabric's own group of all, and one of some of them beside it.
class TwoGroups : public SimGroups {
 public:
  TwoGroups(std::uint32_t members, std::vector<Rank> in_further)
      : SimGroups(members, 1, {.subgroups = {{.name = "all"}}}), further(members) {
    std::vector<std::string> names;
    for (const Rank rank : in_further) names.push_back(name(rank));
    for (const Rank rank : in_further) {
      FurtherNode& node = further[rank];
      node.group = std::make_unique<Group>(
          world.fabric(rank),
          GroupOptions{.subgroups = {{.name = "all"}}, .further = control_of(names)});
      node.group->on_view([&node](const View& view) { node.views.push_back(view); });
      node.group->attach("all", node.participant);
      world.attach(rank, [&node] { return node.group ? node.group->poll() : 0; });
    }
  }

  bool run_until_further_view_of(const std::vector<Rank>& ranks) {
    return world.run_until(
        [&] {
          return std::ranges::all_of(ranks, [&](Rank rank) {
            return !further[rank].views.empty() && further[rank].views.back().ranks == ranks;
          });
        },
        test::kLongNs);
  }

  std::vector<FurtherNode> further;
};

TEST(FurtherGroupInSimulator, HasItsOwnMembersInItsOwnOrder) {
  TwoGroups groups(4, {3, 1});
  ASSERT_TRUE(groups.run_until_view_of({0, 1, 2, 3}));
  ASSERT_TRUE(groups.run_until_further_view_of({3, 1}));
  const Group& group = *groups.further[1].group;
  EXPECT_EQ(group.view().number, 1U);
  EXPECT_EQ(group.view().me, 1U);
  EXPECT_EQ(group.founders(), 2U);
  EXPECT_TRUE(group.name().ends_with("/control")) << group.name();
  EXPECT_EQ(groups.further[1].participant.begun.back().name, "control:all");
  EXPECT_EQ(groups[1].participant.begun.back().name, "all");
}

/// GRP-F2 promises what this test checks.
TEST(FurtherGroupInSimulator, IsLeftWithoutLeavingTheFabric) {
  TwoGroups groups(3, {0, 1, 2});
  ASSERT_TRUE(groups.run_until_further_view_of({0, 1, 2}));
  groups.world.on(1, [&] { groups.further[1].group->leave(); });
  ASSERT_TRUE(groups.run_until_further_view_of({0, 2}));
  ASSERT_TRUE(
      groups.world.run_until([&] { return groups.further[1].group->ended(); }, test::kLongNs));
  EXPECT_NO_THROW(groups.further[1].group->check());
  groups.world.run_for(10'000'000);
  for (const Rank rank : {0U, 1U, 2U}) {
    EXPECT_EQ(groups[rank].group->view().number, 1U);
    EXPECT_TRUE(groups[rank].group->why_ended().empty()) << groups[rank].group->why_ended();
    for (const Rank peer : {0U, 1U, 2U}) EXPECT_FALSE(groups.world.fabric(rank).failed(peer));
  }
  // Both have further views, and each is without its dead.
  groups.world.crash(2);
  ASSERT_TRUE(groups.run_until_view_of({0, 1}));
}

TEST(FurtherGroupInSimulator, GoesOnWhenAMemberDestroysItsPart) {
  TwoGroups groups(3, {0, 1, 2});
  ASSERT_TRUE(groups.run_until_further_view_of({0, 1, 2}));
  groups.world.on(0, [&] { groups.further[0].group.reset(); });
  ASSERT_TRUE(groups.run_until_further_view_of({1, 2}));
  groups.world.run_for(10'000'000);
  EXPECT_EQ(groups[0].group->view().number, 1U);
  EXPECT_TRUE(groups[0].group->why_ended().empty()) << groups[0].group->why_ended();
}

/// GRP-F3 promises what this test checks.
TEST(FurtherGroupInSimulator, GoesOnWithoutTheDeadOfTheFabric) {
  for (Rank dead = 0; dead < 4; ++dead) {
    TwoGroups groups(4, {2, 0, 1});
    ASSERT_TRUE(groups.run_until_further_view_of({2, 0, 1}));
    groups.world.crash(dead);
    std::vector<Rank> left{0, 1, 2, 3};
    std::vector<Rank> further_left{2, 0, 1};
    std::erase(left, dead);
    std::erase(further_left, dead);
    ASSERT_TRUE(groups.run_until_view_of(left)) << dead;
    ASSERT_TRUE(groups.run_until_further_view_of(further_left)) << dead;
    for (const Rank rank : further_left)
      EXPECT_EQ(groups.further[rank].group->view().number, dead == 3 ? 1U : 2U);
  }
}

TEST(FurtherGroupInSimulator, EndsWithTheFabricOfAMemberThatLeavesIt) {
  TwoGroups groups(3, {0, 1, 2});
  ASSERT_TRUE(groups.run_until_further_view_of({0, 1, 2}));
  groups.world.on(2, [&] { groups[2].group->leave(); });
  ASSERT_TRUE(groups.run_until_view_of({0, 1}));
  ASSERT_TRUE(groups.run_until_further_view_of({0, 1}));
  ASSERT_TRUE(groups.world.run_until([&] { return !groups.further[2].group->why_ended().empty(); },
                                     test::kLongNs));
  EXPECT_THROW(groups.further[2].group->check(), Error);
}

TEST(FurtherGroupInSimulator, HasSubgroupsThatComeAndGo) {
  TwoGroups groups(3, {0, 1, 2});
  ASSERT_TRUE(groups.run_until_further_view_of({0, 1, 2}));
  std::vector<ScriptedParticipant> own(3), further(3);
  for (const Rank rank : {0U, 1U, 2U})
    groups.world.on(rank, [&, rank] {
      groups[rank].group->join_subgroup("orders", own[rank], {});
      groups.further[rank].group->join_subgroup("orders", further[rank], {});
    });
  const auto all_in = [](const std::vector<ScriptedParticipant>& participants) {
    return std::ranges::all_of(participants, [](const ScriptedParticipant& participant) {
      return !participant.begun.empty() && participant.begun.back().members.size() == 3;
    });
  };
  ASSERT_TRUE(
      groups.world.run_until([&] { return all_in(own) && all_in(further); }, test::kLongNs));
  EXPECT_EQ(own[1].begun.back().name, "orders");
  EXPECT_EQ(further[1].begun.back().name, "control:orders");
  groups.world.on(1, [&] { groups.further[1].group->leave_subgroup("orders"); });
  ASSERT_TRUE(groups.world.run_until(
      [&] {
        return further[0].begun.back().members == std::vector<Rank>{0, 2};
      },
      test::kLongNs));
  EXPECT_TRUE(all_in(own));
  EXPECT_EQ(groups[0].group->subgroups().front().members.size(), 3U);
  EXPECT_EQ(groups.further[0].group->subgroups().front().members.size(), 2U);
}

TEST(FurtherGroupInSimulator, RefusesOptionsThatCannotBe) {
  SimGroups groups(3);
  Fabric& fabric = groups.world.fabric(1);
  const auto make = [&](FurtherGroup further) {
    Group group(fabric, {.further = std::move(further)});
  };
  expect_error([&] { make({.name = "", .members = {"node1"}, .channel = 7}); },
               "kMaxFurtherGroupNameBytes");
  expect_error([&] { make({.name = "a b", .members = {"node1"}, .channel = 7}); },
               "kMaxFurtherGroupNameBytes");
  expect_error(
      [&] {
        make({.name = "c", .members = {"node0", "node2"}, .channel = 7});
      },
      "lacks this member, 'node1'");
  expect_error(
      [&] {
        make({.name = "c", .members = {"node0", "node1", "node9"}, .channel = 7});
      },
      "'node9', which is no member of the fabric");
  expect_error(
      [&] {
        make({.name = "c", .members = {"node1", "node0", "node1"}, .channel = 7});
      },
      "has 'node1' twice");
  expect_error([&] { make({.name = "c", .members = {"node1"}, .channel = kGroupChannel}); },
               "kGroupChannel");
  expect_error([&] { make({.name = "c", .members = {"node1"}, .channel = kMaxChannels}); },
               "kMaxChannels");
  expect_error(
      [&] {
        Group group(fabric, {.rendezvous = groups.world.rendezvous(1, fabric.group()),
                             .further = control_of({"node1"})});
      },
      "has no rendezvous");
  const Group one(fabric, {.further = control_of({"node1"})});
  expect_error([&] { make({.name = "d", .members = {"node1"}, .channel = 7}); },
               "channel 7 of the fabric is in use");
  expect_error([&] { make({.name = "control", .members = {"node1"}, .channel = 8}); }, "exists");
  expect_error([&] { const Group another(fabric); }, "a second group on one fabric");
}

TEST(FurtherGroupInSimulator, IsNoMembershipOfOtherRanksThanTheFirst) {
  TwoGroups groups(4, {3, 1});
  expect_error([&] { const GroupMembers members(*groups.further[1].group); },
               "not the first ranks of the fabric");
}

}  // namespace
}  // namespace dunlin

#include "group/sim_groups.hpp"

namespace dunlin {
namespace {

using test::SimGroups;

GroupOptions with_subgroup() { return {.subgroups = {{.name = "all"}}}; }

TEST(GroupInSimulator, BeginsWithAViewOfAll) {
  SimGroups groups(3);
  ASSERT_TRUE(groups.run_until_view_of({0, 1, 2}));
  for (Rank rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(groups[rank].group->view().number, 1U);
    EXPECT_EQ(groups[rank].group->view().me, rank);
    EXPECT_FALSE(groups[rank].group->ended());
  }
}

TEST(GroupInSimulator, GoesOnWithoutAMemberThatCrashed) {
  for (Rank dead = 0; dead < 3; ++dead) {
    SimGroups groups(3);
    ASSERT_TRUE(groups.run_until_view_of({0, 1, 2}));
    groups.world.crash(dead);
    std::vector<Rank> left{0, 1, 2};
    std::erase(left, dead);
    ASSERT_TRUE(groups.run_until_view_of(left)) << "without " << dead;
    for (const Rank rank : left) {
      EXPECT_EQ(groups[rank].group->view().number, 2U);
      EXPECT_EQ(groups[rank].group->view().departed, std::vector{groups.name(dead)});
      EXPECT_NO_THROW(groups[rank].group->check());
    }
  }
}

TEST(GroupInSimulator, GoesOnAsLongAsThereAreTwo) {
  SimGroups groups(5);
  std::vector<Rank> left{0, 1, 2, 3, 4};
  ASSERT_TRUE(groups.run_until_view_of(left));
  for (const Rank dead : {0U, 3U, 1U}) {
    groups.world.crash(dead);
    std::erase(left, dead);
    ASSERT_TRUE(groups.run_until_view_of(left)) << "without " << dead;
  }
  EXPECT_EQ(groups[2].group->view().number, 4U);
}

TEST(GroupInSimulator, StopsWithASentenceWhereAMinorityIsLeft) {
  SimGroups groups(3);
  ASSERT_TRUE(groups.run_until_view_of({0, 1, 2}));
  groups.world.crash(0);
  groups.world.crash(1);
  ASSERT_TRUE(groups.run_until_ended(2));
  EXPECT_NE(groups[2].group->why_ended().find("too few members of view 1"), std::string::npos)
      << groups[2].group->why_ended();
  EXPECT_THROW(groups[2].group->check(), Error);
  EXPECT_EQ(groups[2].views.size(), 1U);
}

TEST(GroupInSimulator, LetsAMemberGo) {
  SimGroups groups(3, 1, with_subgroup());
  ASSERT_TRUE(groups.run_until_view_of({0, 1, 2}));
  groups.world.on(1, [&] { groups[1].group->leave(); });
  ASSERT_TRUE(groups.run_until_ended(1));
  EXPECT_NE(groups[1].group->why_ended().find("has left"), std::string::npos);
  EXPECT_NO_THROW(groups[1].group->check());
  EXPECT_EQ(groups[1].participant.trims.size(), 1U);
  ASSERT_TRUE(groups.run_until_view_of({0, 2}));
  EXPECT_EQ(groups[0].participant.stayed, (std::vector<Rank>{0, 2}));
}

/// Or nobody who polls would sleep, or give its processor to the member that is waited for.
TEST(GroupInSimulator, HasNothingToDoWhileItWaitsForAMemberToPromise) {
  SimGroups groups(3, 1, with_subgroup());
  ASSERT_TRUE(groups.run_until_view_of({0, 1, 2}));
  groups.world.pause(2, 100'000);
  groups.world.on(1, [&] { groups[1].group->leave(); });
  ASSERT_TRUE(groups.world.run_until(
      [&] { return groups[0].participant.wedged && groups[1].participant.wedged; }, test::kLongNs));
  groups.world.run_for(20'000);  // what is under way arrives
  for (const Rank rank : {0U, 1U}) {
    std::size_t done = 1;
    groups.world.on(rank, [&] { done = groups[rank].group->poll(); });
    groups.world.run_for(1'000);
    EXPECT_EQ(done, 0U) << rank;
    EXPECT_TRUE(groups[rank].participant.wedged) << rank;
  }
  EXPECT_FALSE(groups[2].participant.wedged);
  ASSERT_TRUE(groups.run_until_view_of({0, 2}));
}

TEST(GroupInSimulator, TrimsToWhatAllSurvivorsHaveReceived) {
  SimGroups groups(3, 1, with_subgroup());
  ASSERT_TRUE(groups.run_until_view_of({0, 1, 2}));
  groups[0].participant.counts = {10, 20, 30};
  groups[1].participant.counts = {12, 19, 30};
  groups[2].participant.counts = {1, 1, 1};
  groups.world.crash(2);
  ASSERT_TRUE(groups.run_until_view_of({0, 1}));
  for (const Rank rank : {0U, 1U}) {
    EXPECT_EQ(groups[rank].participant.trims,
              (std::vector<std::vector<std::uint64_t>>{{10, 19, 30}}));
    ASSERT_EQ(groups[rank].participant.begun.size(), 2U);
    EXPECT_EQ(groups[rank].participant.begun[1].members, (std::vector<Rank>{0, 1}));
    EXPECT_EQ(groups[rank].participant.begun[1].view, 2U);
  }
}

TEST(GroupInSimulator, TellsAMemberThatWasTakenForDeadThatItIsOut) {
  SimGroups groups(3, 1, with_subgroup());
  ASSERT_TRUE(groups.run_until_view_of({0, 1, 2}));
  groups.world.pause(2, 20'000'000);
  ASSERT_TRUE(groups.run_until_view_of({0, 1}));
  ASSERT_TRUE(groups.run_until_ended(2));
  EXPECT_THROW(groups[2].group->check(), Error);
  EXPECT_EQ(groups[2].views.size(), 1U);
}

TEST(GroupInSimulator, EndsWithItsLastMember) {
  SimGroups groups(2);
  ASSERT_TRUE(groups.run_until_view_of({0, 1}));
  groups.world.on(0, [&] { groups[0].group->leave(); });
  ASSERT_TRUE(groups.run_until_ended(0));
  ASSERT_TRUE(groups.run_until_view_of({1}));
  groups.world.on(1, [&] { groups[1].group->leave(); });
  ASSERT_TRUE(groups.run_until_ended(1));
  EXPECT_NO_THROW(groups[1].group->check());
}

}  // namespace
}  // namespace dunlin

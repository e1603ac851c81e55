#include <vector>

#include <gtest/gtest.h>

#include "group/view_change.hpp"

/// The rules of docs/group.md, one by one, in a view whose members hear each other as the test
/// says.
namespace dunlin::group {
namespace {

/// All members of a view; what one says reaches whom `hears` lets hear it.
class Table {
 public:
  explicit Table(std::uint32_t members) : received(members), plans(members), leaves(members) {
    for (Rank rank = 0; rank < members; ++rank) {
      changes_.emplace_back(members, rank);
      copies_.emplace_back(members);
      received[rank].assign(members, 0);
      for (Row& row : copies_[rank]) row.received.assign(members, 0);
      failed.emplace_back();
      deaf.emplace_back();
    }
  }

  void receive(Rank rank, Rank from) { copies_[rank][from] = changes_[from].mine(); }
  bool step(Rank rank) {
    return changes_[rank].step([&](Rank other) -> const Row& { return copies_[rank][other]; },
                               {.failed = failed[rank],
                                .wants_to_leave = leaves[rank],
                                .received = received[rank],
                                .plan = plans[rank]});
  }
  /// Until nothing changes; who is `deaf` to a member hears nothing of it.
  void settle(MemberSet running) {
    for (bool again = true; again;) {
      again = false;
      for (const Rank rank : running) {
        for (Rank other = 0; other < changes_.size(); ++other)
          if (other != rank && !deaf[rank].has(other) && running.has(other)) receive(rank, other);
        again |= step(rank);
      }
    }
  }
  [[nodiscard]] const ViewChange& at(Rank rank) const { return changes_[rank]; }

  std::vector<std::vector<std::uint64_t>> received;
  std::vector<PlanId> plans;
  std::vector<bool> leaves;
  std::vector<MemberSet> failed;
  std::vector<MemberSet> deaf;

 private:
  std::vector<ViewChange> changes_;
  std::vector<std::vector<Row>> copies_;
};

MemberSet set_of(std::initializer_list<Rank> ranks) {
  MemberSet set;
  for (const Rank rank : ranks) set.add(rank);
  return set;
}

TEST(ViewChangeRules, AViewGoesOnWhileNothingHappens) {
  Table view(3);
  view.settle(MemberSet::first(3));
  for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(view.at(rank).state(), ViewState::working);
}

TEST(ViewChangeRules, CrashLeaveAndJoinersAreOneChange) {
  Table view(4);
  view.received = {{5, 1, 0, 9}, {4, 2, 0, 7}, {5, 2, 0, 8}, {9, 9, 9, 9}};
  for (const Rank rank : {0U, 1U, 2U}) view.failed[rank] = set_of({3});
  view.leaves[2] = true;
  view.plans[0] = 77;
  view.settle(MemberSet::first(3));
  const Decision expected{.survivors = set_of({0, 1}), .plan = 77, .trim = {4, 1, 0, 7}};
  for (const Rank rank : {0U, 1U, 2U}) EXPECT_EQ(view.at(rank).decision(), expected);
  EXPECT_EQ(view.at(1).state(), ViewState::decided);
  EXPECT_EQ(view.at(2).state(), ViewState::excluded);
}

TEST(ViewChangeRules, HalfOfTheMembersGoOnOnlyWithTheOldest) {
  Table view(4);
  for (const Rank rank : {0U, 1U}) view.failed[rank] = set_of({2, 3});
  for (const Rank rank : {2U, 3U}) view.failed[rank] = set_of({0, 1});
  view.settle(MemberSet::first(4));
  EXPECT_EQ(view.at(0).decision().survivors, set_of({0, 1}));
  EXPECT_EQ(view.at(1).state(), ViewState::decided);
  EXPECT_EQ(view.at(2).state(), ViewState::minority);
  EXPECT_EQ(view.at(3).state(), ViewState::minority);
}

TEST(ViewChangeRules, OfTwoThatSuspectEachOtherTheOlderGoesOn) {
  Table view(4);
  view.failed[1] = set_of({3});
  view.failed[3] = set_of({1});
  view.step(1);
  view.step(3);
  view.settle(MemberSet::first(4));
  EXPECT_EQ(view.at(0).decision().survivors, set_of({0, 1, 2}));
  EXPECT_EQ(view.at(3).state(), ViewState::excluded);
}

TEST(ViewChangeRules, WhoIsSuspectedByOneOnlyDoesNotGoOn) {
  Table view(4);
  view.failed[3] = set_of({1});
  view.step(3);
  view.settle(MemberSet::first(4));
  EXPECT_EQ(view.at(0).decision().survivors, set_of({0, 2, 3}));
}

TEST(ViewChangeRules, TheLeaderGoesOnWithoutWhoSuspectsIt) {
  Table view(3);
  view.failed[1] = set_of({0});
  view.deaf[1] = set_of({0});
  view.settle(MemberSet::first(3));
  EXPECT_EQ(view.at(0).decision().survivors, set_of({0, 2}));
  EXPECT_EQ(view.at(1).state(), ViewState::excluded);  // 2 has told it
}

/// Member 2 knows of a quorum for what member 0 has proposed, and both die of it.
TEST(ViewChangeRules, ALeaderProposesWhatMayBeDecidedAlready) {
  Table view(5);
  view.plans[0] = 42;
  view.step(0);
  for (const Rank rank : {1U, 2U, 3U, 4U}) {
    view.receive(rank, 0);
    view.step(rank);
    view.receive(0, rank);
  }
  view.step(0);
  for (const Rank rank : {3U, 2U}) {
    view.receive(rank, 0);
    view.step(rank);
  }
  view.receive(2, 3);
  view.step(2);
  ASSERT_EQ(view.at(2).state(), ViewState::decided);
  for (const Rank rank : {1U, 3U, 4U}) view.failed[rank] = set_of({0, 2});
  view.settle(set_of({1, 3, 4}));
  for (const Rank rank : {1U, 3U, 4U}) {
    EXPECT_EQ(view.at(rank).state(), ViewState::decided);
    EXPECT_EQ(view.at(rank).decision(), view.at(2).decision());
  }
}

/// What a member has said when it promised is final: it counts nothing that comes later.
TEST(ViewChangeRules, WhatIsReceivedAfterThePromiseDoesNotCount) {
  Table view(2);
  view.leaves[0] = true;
  view.step(0);
  view.receive(1, 0);
  view.step(1);
  ASSERT_EQ(view.at(1).state(), ViewState::wedged);
  view.received = {{8, 8}, {8, 8}};
  view.settle(MemberSet::first(2));
  EXPECT_EQ(view.at(1).decision().trim, (std::vector<std::uint64_t>{0, 0}));
}

/// Members of every word of a set die at once, two leaders among them; one leaves.
TEST(ViewChangeRules, AreTheSameForManyMembers) {
  constexpr std::uint32_t kMany = 130;
  Table view(kMany);
  const MemberSet dead = set_of({0, 1, 63, 64, 127, 129});
  const MemberSet running = MemberSet::first(kMany) - dead;
  for (const Rank rank : running) view.failed[rank] = dead;
  for (Rank rank = 0; rank < kMany; ++rank) view.received[rank][128] = 1'000 - rank;
  view.leaves[128] = true;
  view.settle(running);
  for (const Rank rank : running) {
    ASSERT_EQ(view.at(rank).state(), rank == 128 ? ViewState::excluded : ViewState::decided);
    EXPECT_EQ(view.at(rank).decision().survivors, running - set_of({128}));
    EXPECT_EQ(view.at(rank).decision().trim[128], 1'000U - 128) << "the least that one has";
  }
}

TEST(ViewChangeRules, HalfOfManyMembersGoOnOnlyWithTheOldest) {
  constexpr std::uint32_t kMany = 80;
  const MemberSet half = MemberSet::first(kMany / 2);
  for (const bool oldest : {true, false}) {
    Table view(kMany);
    const MemberSet running = oldest ? half : MemberSet::first(kMany) - half;
    for (const Rank rank : running) view.failed[rank] = MemberSet::first(kMany) - running;
    view.settle(running);
    for (const Rank rank : running)
      EXPECT_EQ(view.at(rank).state(), oldest ? ViewState::decided : ViewState::minority);
  }
}

TEST(ViewChangeRules, OneMemberAloneTakesInJoiners) {
  Table view(1);
  view.plans[0] = 7;
  view.settle(MemberSet::first(1));
  EXPECT_EQ(view.at(0).state(), ViewState::decided);
  EXPECT_EQ(view.at(0).decision().plan, 7U);
}

}  // namespace
}  // namespace dunlin::group

#include <array>
#include <optional>

#include <gtest/gtest.h>

#include "fabric/shm/start_agreement.hpp"

namespace dunlin::shm {
namespace {

/// Members that meet and tell each other what Agreement asks them to, in the order of the test.
class StartAgreements : public testing::Test {
 protected:
  static constexpr std::uint32_t kMembers = 3;

  void SetUp() override {
    for (Rank rank = 0; rank < kMembers; ++rank) start(rank, 10 + rank);
  }
  void start(Rank rank, std::uint64_t incarnation) {
    incarnations_[rank] = incarnation;
    members_[rank].emplace(rank, incarnation, kMembers);
  }
  StartAgreement& member(Rank rank) { return *members_[rank]; }
  void meet(Rank a, Rank b) {
    member(a).met(b, incarnations_[b]);
    member(b).met(a, incarnations_[a]);
  }
  void meet_all() {
    meet(0, 1);
    meet(0, 2);
    meet(1, 2);
  }
  void report(Rank from) {
    const auto round = member(from).take_report();
    ASSERT_TRUE(round.has_value());
    if (from != 0) member(0).on_ready(from, *round);
  }
  void report_all() {
    for (Rank rank = 0; rank < kMembers; ++rank) report(rank);
  }

  std::array<std::optional<StartAgreement>, kMembers> members_;
  std::array<std::uint64_t, kMembers> incarnations_{};
};

TEST_F(StartAgreements, DecidesWhenAllHaveReported) {
  meet_all();
  report(1);
  report(2);
  EXPECT_EQ(member(0).decided(), nullptr);
  report(0);
  ASSERT_NE(member(0).decided(), nullptr);
  EXPECT_EQ(*member(0).decided(), (StartAgreement::Incarnations{10, 11, 12}));
}

TEST_F(StartAgreements, ReportsOnlyWhenConnectedToAllAndOnlyOnce) {
  meet(1, 0);
  EXPECT_FALSE(member(1).take_report().has_value());
  meet(1, 2);
  EXPECT_TRUE(member(1).take_report().has_value());
  EXPECT_FALSE(member(1).take_report().has_value());
}

TEST_F(StartAgreements, NobodyButRankZeroDecidesByItself) {
  meet_all();
  report_all();
  EXPECT_EQ(member(1).decided(), nullptr);
  member(1).on_go(member(0).decided_round());
  EXPECT_NE(member(1).decided(), nullptr);
}

TEST_F(StartAgreements, ALoneMemberDecidesAtOnce) {
  StartAgreement alone(0, 7, 1);
  EXPECT_TRUE(alone.take_report().has_value());
  EXPECT_NE(alone.decided(), nullptr);
}

TEST_F(StartAgreements, AMemberThatDiedBeforeTheDecisionIsReplaced) {
  meet_all();
  report(1);
  report(2);
  member(0).lost(1);
  member(2).lost(1);
  EXPECT_FALSE(member(0).take_report().has_value());
  start(1, 21);
  meet(1, 0);
  meet(1, 2);
  report_all();
  ASSERT_NE(member(0).decided(), nullptr);
  EXPECT_EQ(*member(0).decided(), (StartAgreement::Incarnations{10, 21, 12}));
}

TEST_F(StartAgreements, AReportOfAnEarlierRoundDoesNotCountForALaterOne) {
  meet_all();
  report(1);
  report(2);
  member(0).lost(1);
  start(1, 21);
  meet(1, 0);
  meet(1, 2);
  report(0);
  report(1);
  EXPECT_EQ(member(0).decided(), nullptr) << "rank 2 has not reported the new rank 1";
}

TEST_F(StartAgreements, AnUnknownGoIsNotFollowed) {
  meet_all();
  report(1);
  member(1).on_go(12345);
  EXPECT_EQ(member(1).decided(), nullptr);
}

TEST_F(StartAgreements, AnEarlierRoundThatWasDecidedHoldsEvenIfWeHaveMovedOn) {
  meet_all();
  report_all();
  const std::uint64_t round = member(0).decided_round();
  member(2).lost(1);  // rank 1 died and was replaced, before the `go` came to us
  start(1, 21);
  meet(1, 2);
  EXPECT_TRUE(member(2).take_report().has_value());
  member(2).on_go(round);
  ASSERT_NE(member(2).decided(), nullptr);
  EXPECT_EQ((*member(2).decided())[1], 11u) << "the one that died, not the one that came";
}

TEST_F(StartAgreements, RankZeroReplacedAfterItsDeathDecidesAnew) {
  meet_all();
  report(1);
  report(2);
  member(1).lost(0);
  member(2).lost(0);
  start(0, 20);
  meet(0, 1);
  meet(0, 2);
  report_all();
  ASSERT_NE(member(0).decided(), nullptr);
  EXPECT_EQ(*member(0).decided(), (StartAgreement::Incarnations{20, 11, 12}));
}

TEST_F(StartAgreements, RoundsOfDifferentMembersHaveDifferentHashes) {
  StartAgreement a(1, 5, 2), b(1, 5, 2);
  a.met(0, 1);
  b.met(0, 2);
  EXPECT_NE(a.take_report(), b.take_report());
}

}  // namespace
}  // namespace dunlin::shm

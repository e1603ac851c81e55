#include <gtest/gtest.h>

#include "fabric/meeting/gathering.hpp"
#include "support/errors.hpp"

namespace dunlin::meeting {
namespace {

using dunlin::test::contains;

Plan plan_of(std::uint32_t members, Rank rank = kAnyRank) {
  Plan plan;
  plan.group = "flock";
  plan.names.resize(members);
  plan.rank = rank;
  return plan;
}

Plan plan_of(const std::vector<std::string>& names, Rank rank) {
  Plan plan = plan_of(static_cast<std::uint32_t>(names.size()), rank);
  plan.names = names;
  plan.names_hash = sha256(bytes_of(names[0]));
  return plan;
}

Introduction guest_of(const Plan& plan, Rank rank = kAnyRank, const std::string& card = "") {
  return {plan.members(), rank, plan.names_hash, plan.group, bytes_of(card)};
}

/// A gathering, and guests that come to it.
class MeetingGathering : public testing::Test {
 protected:
  explicit MeetingGathering(Plan plan = plan_of(3))
      : plan_(std::move(plan)), gathering_(plan_, {}) {}

  Gathering::Ticket come(Rank rank = kAnyRank, const std::string& card = "") {
    const Gathering::Verdict verdict = gathering_.admit(guest_of(plan_, rank, card), "somewhere");
    EXPECT_EQ(verdict.refusal, "");
    return verdict.admitted.value_or(999);
  }
  std::string refusal_of(const Introduction& guest) {
    const Gathering::Verdict verdict = gathering_.admit(guest, "somewhere");
    EXPECT_FALSE(verdict.admitted.has_value());
    return verdict.refusal;
  }

  Plan plan_;
  Gathering gathering_;
};

TEST_F(MeetingGathering, IsDecidedWhenAllHaveConfirmed) {
  const auto first = come(), second = come();
  EXPECT_TRUE(gathering_.complete());
  EXPECT_TRUE(gathering_.confirmed(first, 1));
  EXPECT_FALSE(gathering_.decided());
  EXPECT_TRUE(gathering_.confirmed(second, 1));
  EXPECT_TRUE(gathering_.decided());
}

TEST_F(MeetingGathering, AlwaysHasItsHost) {
  const Plan alone = plan_of(1);
  EXPECT_TRUE(Gathering(alone, {}).decided());
}

TEST_F(MeetingGathering, GivesRanksInOrderOfArrivalToWhoDoesNotCare) {
  const auto picky = come(0), other = come();
  EXPECT_EQ(gathering_.rank_of(Gathering::kHost), 1u);
  EXPECT_EQ(gathering_.rank_of(picky), 0u);
  EXPECT_EQ(gathering_.rank_of(other), 2u);
}

TEST_F(MeetingGathering, KnowsTheCardOfEachRank) {
  come(2, "two");
  come(kAnyRank, "other");
  EXPECT_EQ(gathering_.card_of(0).size(), 0u) << "the host's";
  EXPECT_EQ(gathering_.card_of(1).size(), 5u);
  EXPECT_EQ(gathering_.card_of(2).size(), 3u);
}

TEST_F(MeetingGathering, BeginsAnotherRoundWithASuccessor) {
  const auto first = come(), doomed = come();
  EXPECT_TRUE(gathering_.confirmed(first, 1));
  gathering_.left(doomed);
  EXPECT_FALSE(gathering_.complete());
  const auto successor = come();
  EXPECT_EQ(gathering_.round(), 2u);
  EXPECT_TRUE(gathering_.confirmed(successor, 2));
  EXPECT_FALSE(gathering_.decided()) << "the first has confirmed another round";
  EXPECT_TRUE(gathering_.confirmed(first, 2));
  EXPECT_TRUE(gathering_.decided());
}

TEST_F(MeetingGathering, TakesALateConfirmationOfAnEarlierRoundForNoMore) {
  const auto first = come(), doomed = come();
  gathering_.left(doomed);
  const auto successor = come();
  EXPECT_TRUE(gathering_.confirmed(first, 1));
  EXPECT_TRUE(gathering_.confirmed(successor, 2));
  EXPECT_FALSE(gathering_.decided());
}

TEST_F(MeetingGathering, StaysDecidedWhoeverLeaves) {
  const auto first = come(), second = come();
  EXPECT_TRUE(gathering_.confirmed(first, 1));
  EXPECT_TRUE(gathering_.confirmed(second, 1));
  gathering_.left(first);
  EXPECT_TRUE(gathering_.decided());
  EXPECT_EQ(gathering_.rank_of(first), 1u);
}

TEST_F(MeetingGathering, TakesNoConfirmationOfARoundThatIsNotOrTwice) {
  const auto first = come();
  EXPECT_FALSE(gathering_.confirmed(first, 1)) << "not complete";
  come();
  EXPECT_FALSE(gathering_.confirmed(first, 0));
  EXPECT_FALSE(gathering_.confirmed(first, 2));
  EXPECT_TRUE(gathering_.confirmed(first, 1));
  EXPECT_FALSE(gathering_.confirmed(first, 1));
}

TEST_F(MeetingGathering, RefusesARankThatIsTaken) {
  come(1);
  const Gathering::Verdict verdict = gathering_.admit(guest_of(plan_, 1), "elsewhere");
  EXPECT_TRUE(verdict.taken);
  EXPECT_TRUE(contains(verdict.refusal, "rank 1 is taken by somewhere"));
}

TEST_F(MeetingGathering, RefusesOneMoreThanThereArePlaces) {
  come();
  come();
  EXPECT_TRUE(contains(refusal_of(guest_of(plan_)), "all its 3 places are taken"));
}

TEST_F(MeetingGathering, RefusesWhoExpectsAnotherGroup) {
  Introduction guest = guest_of(plan_);
  guest.group = "herd";
  EXPECT_TRUE(contains(refusal_of(guest), "of group 'flock', and this member of 'herd'"));
  guest = guest_of(plan_);
  guest.members = 4;
  EXPECT_TRUE(contains(refusal_of(guest), "expects 3 members, and this member expects 4"));
  guest = guest_of(plan_);
  guest.names_hash[0] = std::byte{1};
  EXPECT_TRUE(contains(refusal_of(guest), "joins by count, and this member by name"));
  EXPECT_TRUE(contains(gathering_.progress(), "1 of 3"));
}

TEST_F(MeetingGathering, SaysWhoIsMissing) {
  EXPECT_EQ(gathering_.progress(), "1 of 3 members have come; missing: 2 more");
  come(2);
  EXPECT_EQ(gathering_.progress(), "2 of 3 members have come; missing: 1 more");
  const Plan ranked = plan_of(3, 1);
  EXPECT_EQ(Gathering(ranked, {}).progress(), "1 of 3 members have come; missing: rank 0, rank 2");
  const Plan big = plan_of(100, 0);
  EXPECT_TRUE(contains(Gathering(big, {}).progress(), "rank 11, rank 12 and 87 more"));
}

TEST_F(MeetingGathering, SaysWhoHasNotConfirmed) {
  EXPECT_TRUE(gathering_.confirmed((come(), come()), 1));
  EXPECT_TRUE(contains(gathering_.progress(), "rank 1 from somewhere"));
}

class MeetingGatheringByName : public MeetingGathering {
 protected:
  MeetingGatheringByName() : MeetingGathering(plan_of({"ada", "bob", "cyd"}, 1)) {}
};

TEST_F(MeetingGatheringByName, SaysWhoIsMissingByName) {
  EXPECT_EQ(gathering_.progress(),
            "1 of 3 members have come; missing: 'ada' (rank 0), 'cyd' (rank 2)");
}

TEST_F(MeetingGatheringByName, RefusesANameThatIsTaken) {
  EXPECT_TRUE(
      contains(refusal_of(guest_of(plan_, 1)), "'bob' (rank 1) is taken by the host itself"));
}

TEST_F(MeetingGatheringByName, RefusesAnotherListOfNames) {
  Introduction guest = guest_of(plan_, 0);
  guest.names_hash[0] ^= std::byte{1};
  EXPECT_TRUE(contains(refusal_of(guest), "than the host: ada, bob, cyd"));
}

}  // namespace
}  // namespace dunlin::meeting

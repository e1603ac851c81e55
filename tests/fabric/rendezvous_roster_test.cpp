#include <gtest/gtest.h>

#include "fabric/rendezvous/roster_builder.hpp"
#include "support/errors.hpp"

namespace dunlin::rendezvous {
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

JoinRequest joiner_of(const Plan& plan, Rank rank = kAnyRank,
                      const std::string& endpoint_address = "") {
  return {plan.members(), rank,       plan.names_hash,
          plan.group,     plan.terms, bytes_of(endpoint_address)};
}

/// A builder, and joiners that come to it.
class RendezvousRoster : public testing::Test {
 protected:
  explicit RendezvousRoster(Plan plan = plan_of(3)) : plan_(std::move(plan)), builder_(plan_, {}) {}

  RosterBuilder::Ticket come(Rank rank = kAnyRank, const std::string& endpoint_address = "") {
    const RosterBuilder::Verdict verdict =
        builder_.admit(joiner_of(plan_, rank, endpoint_address), "somewhere");
    EXPECT_EQ(verdict.refusal, "");
    return verdict.admitted.value_or(999);
  }
  std::string refusal_of(const JoinRequest& joiner) {
    const RosterBuilder::Verdict verdict = builder_.admit(joiner, "somewhere");
    EXPECT_FALSE(verdict.admitted.has_value());
    return verdict.refusal;
  }

  Plan plan_;
  RosterBuilder builder_;
};

TEST_F(RendezvousRoster, IsDecidedWhenAllHaveConfirmed) {
  const auto first = come(), second = come();
  EXPECT_TRUE(builder_.complete());
  EXPECT_TRUE(builder_.confirmed(first, 1));
  EXPECT_FALSE(builder_.decided());
  EXPECT_TRUE(builder_.confirmed(second, 1));
  EXPECT_TRUE(builder_.decided());
}

TEST_F(RendezvousRoster, AlwaysHasItsHost) {
  const Plan alone = plan_of(1);
  EXPECT_TRUE(RosterBuilder(alone, {}).decided());
}

TEST_F(RendezvousRoster, GivesRanksInOrderOfArrivalToWhoDoesNotCare) {
  const auto picky = come(0), other = come();
  EXPECT_EQ(builder_.rank_of(RosterBuilder::kHost), 1u);
  EXPECT_EQ(builder_.rank_of(picky), 0u);
  EXPECT_EQ(builder_.rank_of(other), 2u);
}

TEST_F(RendezvousRoster, KnowsTheEndpointOfEachRank) {
  come(2, "two");
  come(kAnyRank, "other");
  EXPECT_EQ(builder_.endpoint_address_of(0).size(), 0u) << "the host's";
  EXPECT_EQ(builder_.endpoint_address_of(1).size(), 5u);
  EXPECT_EQ(builder_.endpoint_address_of(2).size(), 3u);
}

TEST_F(RendezvousRoster, BeginsAnotherRoundWithASuccessor) {
  const auto first = come(), doomed = come();
  EXPECT_TRUE(builder_.confirmed(first, 1));
  builder_.left(doomed);
  EXPECT_FALSE(builder_.complete());
  const auto successor = come();
  EXPECT_EQ(builder_.round(), 2u);
  EXPECT_TRUE(builder_.confirmed(successor, 2));
  EXPECT_FALSE(builder_.decided()) << "the first has confirmed another round";
  EXPECT_TRUE(builder_.confirmed(first, 2));
  EXPECT_TRUE(builder_.decided());
}

TEST_F(RendezvousRoster, TakesALateConfirmationOfAnEarlierRoundForNoMore) {
  const auto first = come(), doomed = come();
  builder_.left(doomed);
  const auto successor = come();
  EXPECT_TRUE(builder_.confirmed(first, 1));
  EXPECT_TRUE(builder_.confirmed(successor, 2));
  EXPECT_FALSE(builder_.decided());
}

TEST_F(RendezvousRoster, StaysDecidedWhoeverLeaves) {
  const auto first = come(), second = come();
  EXPECT_TRUE(builder_.confirmed(first, 1));
  EXPECT_TRUE(builder_.confirmed(second, 1));
  builder_.left(first);
  EXPECT_TRUE(builder_.decided());
  EXPECT_EQ(builder_.rank_of(first), 1u);
}

TEST_F(RendezvousRoster, TakesNoConfirmationOfARoundThatIsNotOrTwice) {
  const auto first = come();
  EXPECT_FALSE(builder_.confirmed(first, 1)) << "not complete";
  come();
  EXPECT_FALSE(builder_.confirmed(first, 0));
  EXPECT_FALSE(builder_.confirmed(first, 2));
  EXPECT_TRUE(builder_.confirmed(first, 1));
  EXPECT_FALSE(builder_.confirmed(first, 1));
}

TEST_F(RendezvousRoster, RefusesARankThatIsTaken) {
  come(1);
  const RosterBuilder::Verdict verdict = builder_.admit(joiner_of(plan_, 1), "elsewhere");
  EXPECT_TRUE(verdict.taken);
  EXPECT_TRUE(contains(verdict.refusal, "rank 1 is taken by somewhere"));
}

TEST_F(RendezvousRoster, RefusesOneMoreThanThereArePlaces) {
  come();
  come();
  EXPECT_TRUE(contains(refusal_of(joiner_of(plan_)), "all its 3 places are taken"));
}

/// RDV-N3 says what is compared before a member counts.
TEST_F(RendezvousRoster, RefusesWhoExpectsAnotherGroup) {
  JoinRequest joiner = joiner_of(plan_);
  joiner.group = "herd";
  EXPECT_TRUE(contains(refusal_of(joiner), "of group 'flock', and this member of 'herd'"));
  joiner = joiner_of(plan_);
  joiner.members = 4;
  EXPECT_TRUE(contains(refusal_of(joiner), "expects 3 members, and this member expects 4"));
  joiner = joiner_of(plan_);
  joiner.names_hash[0] = std::byte{1};
  EXPECT_TRUE(contains(refusal_of(joiner), "joins by count, and this member by name"));
  joiner = joiner_of(plan_);
  joiner.terms = "network tcp, encrypt 1";
  EXPECT_TRUE(contains(refusal_of(joiner),
                       "the host joins by nothing, and this member by network tcp, encrypt 1"));
  EXPECT_TRUE(contains(builder_.progress(), "1 of 3"));
}

TEST_F(RendezvousRoster, SaysWhoIsMissing) {
  EXPECT_EQ(builder_.progress(), "1 of 3 members have come; missing: 2 more");
  come(2);
  EXPECT_EQ(builder_.progress(), "2 of 3 members have come; missing: 1 more");
  const Plan ranked = plan_of(3, 1);
  EXPECT_EQ(RosterBuilder(ranked, {}).progress(),
            "1 of 3 members have come; missing: rank 0, rank 2");
  const Plan big = plan_of(100, 0);
  EXPECT_TRUE(contains(RosterBuilder(big, {}).progress(), "rank 11, rank 12 and 87 more"));
}

TEST_F(RendezvousRoster, SaysWhoHasNotConfirmed) {
  EXPECT_TRUE(builder_.confirmed((come(), come()), 1));
  EXPECT_TRUE(contains(builder_.progress(), "rank 1 from somewhere"));
}

class RendezvousRosterByName : public RendezvousRoster {
 protected:
  RendezvousRosterByName() : RendezvousRoster(plan_of({"ada", "bob", "cyd"}, 1)) {}
};

TEST_F(RendezvousRosterByName, SaysWhoIsMissingByName) {
  EXPECT_EQ(builder_.progress(),
            "1 of 3 members have come; missing: 'ada' (rank 0), 'cyd' (rank 2)");
}

TEST_F(RendezvousRosterByName, RefusesANameThatIsTaken) {
  EXPECT_TRUE(
      contains(refusal_of(joiner_of(plan_, 1)), "'bob' (rank 1) is taken by the host itself"));
}

TEST_F(RendezvousRosterByName, RefusesAnotherListOfNames) {
  JoinRequest joiner = joiner_of(plan_, 0);
  joiner.names_hash[0] ^= std::byte{1};
  EXPECT_TRUE(contains(refusal_of(joiner), "than the host: ada, bob, cyd"));
}

}  // namespace
}  // namespace dunlin::rendezvous

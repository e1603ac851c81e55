#include "group/member_set.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace dunlin::group {
namespace {

MemberSet with(const std::vector<Rank>& ranks) {
  MemberSet set;
  for (const Rank rank : ranks) set.add(rank);
  return set;
}

std::vector<Rank> listed(const MemberSet& set) {
  std::vector<Rank> ranks;
  for (const Rank rank : set) ranks.push_back(rank);
  return ranks;
}

/// At the borders of words, and in words with empty ones between them.
const std::vector<Rank> kSome{0, 63, 64, 127, 192, 255};

TEST(MemberSet, HasTheRanksThatWereAdded) {
  const MemberSet set = with(kSome);
  EXPECT_EQ(listed(set), kSome);
  EXPECT_EQ(set.size(), kSome.size());
  for (Rank rank = 0; rank < kMaxViewMembers; ++rank)
    EXPECT_EQ(set.has(rank), std::ranges::find(kSome, rank) != kSome.end()) << rank;
  for (const Rank rank : kSome) {
    EXPECT_EQ(MemberSet::only(rank).lowest(), rank);
    EXPECT_EQ(listed(MemberSet::only(rank)), std::vector<Rank>{rank});
  }
  EXPECT_EQ(MemberSet(0b101), with({0, 2}));
}

TEST(MemberSet, HasNoRankThatNoViewHas) {
  MemberSet set;
  for (const Rank rank : {kMaxViewMembers, 4 * kMaxViewMembers, UINT32_MAX}) set.add(rank);
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.size(), 0U);
  EXPECT_EQ(set.begin(), set.end());
  EXPECT_FALSE(MemberSet::first(kMaxViewMembers).has(kMaxViewMembers));
}

TEST(MemberSet, BeginsWithTheFirstRanks) {
  for (std::uint32_t members = 0; members <= kMaxViewMembers; ++members) {
    const MemberSet first = MemberSet::first(members);
    ASSERT_EQ(first.size(), members);
    ASSERT_EQ(first.empty(), members == 0);
    for (Rank rank = 0; rank < members; ++rank) ASSERT_TRUE(first.has(rank)) << rank;
  }
  EXPECT_EQ(MemberSet::words_for(1), 1U);
  EXPECT_EQ(MemberSet::words_for(64), 1U);
  EXPECT_EQ(MemberSet::words_for(65), 2U);
  EXPECT_EQ(MemberSet::words_for(kMaxViewMembers), MemberSet::kWords);
}

TEST(MemberSet, IsCombinedWithOthers) {
  const MemberSet a = with({1, 63, 64, 200});
  const MemberSet b = with({63, 65, 200, 255});
  EXPECT_EQ(a | b, with({1, 63, 64, 65, 200, 255}));
  EXPECT_EQ(a & b, with({63, 200}));
  EXPECT_EQ(a - b, with({1, 64}));
  EXPECT_NE(a, b);
}

TEST(MemberSet, IsAQuorumIfItIsMoreThanHalfOrHalfWithRank0) {
  for (const std::uint32_t members : {2U, 64U, 65U, 200U, 255U, 256U}) {
    const MemberSet most = MemberSet::first(members / 2 + 1);
    const MemberSet half = MemberSet::first(members / 2);
    EXPECT_TRUE(is_quorum(most, members)) << members;
    EXPECT_EQ(is_quorum(half, members), members % 2 == 0) << members;
    EXPECT_FALSE(is_quorum(MemberSet::first(members) - most, members)) << members;
    if (members % 2 == 0) {
      EXPECT_FALSE(is_quorum(MemberSet::first(members) - half, members)) << "without rank 0";
    }
  }
}

}  // namespace
}  // namespace dunlin::group

#include "top/claims.hpp"

#include <gtest/gtest.h>

#include "command.hpp"
#include "top/fake_group.hpp"
#include "top/selection.hpp"

namespace dunlin::top {
namespace {

constexpr uid_t kNobodyKnown = 4'000'000'000;
const std::string kSockets =
    "Num       RefCount Protocol Flags    Type St Inode Path\n"
    "0000000000000000: 00000002 00000000 00010000 0005 01 21 @dunlin:u4000000000:rack7:0\n"
    "0000000000000000: 00000003 00000000 00000000 0005 03 22 @dunlin:u4000000000:rack7:0\n"
    "0000000000000000: 00000002 00000000 00010000 0005 01 23 @dunlin:u4000000000:rack7:1\n"
    "0000000000000000: 00000002 00000000 00010000 0005 01 24 @dunlin:g4000000001:lab:5\n"
    "0000000000000000: 00000002 00000000 00010000 0005 01 25 @dunlin:x1:lab:5\n"
    "0000000000000000: 00000002 00000000 00010000 0005 01 26 @dunlin:u1:lab:5:6\n"
    "0000000000000000: 00000002 00000000 00010000 0005 01 27 @dunlin:u1::5\n"
    "0000000000000000: 00000002 00000000 00010000 0005 01 28 /run/other\n";

template <class Refusal>
std::string refusal_of(const Selection& selection, const Sample& sample,
                       const std::vector<Hidden>& hidden = {}) {
  try {
    check(selection, sample, hidden);
  } catch (const Refusal& refusal) {
    return refusal.what();
  }
  return "none";
}

TEST(TopClaims, AreReadFromTheNamesOfSockets) {
  const std::vector<Claim> claims = parse_claims(kSockets);
  ASSERT_EQ(claims.size(), 3U);
  EXPECT_EQ(claims[1].group, "rack7");
  EXPECT_EQ(claims[1].rank, 1U);
  EXPECT_EQ(claims[1].user, kNobodyKnown);
  EXPECT_EQ(claims[1].access, "user 4000000000");
  EXPECT_EQ(claims[2].access, "Unix group 4000000001");
}

TEST(TopClaims, TellWhomToAskForWhatWeMayNotRead) {
  const std::vector<Hidden> hidden = find_hidden(parse_claims(kSockets), {}, 1000);
  ASSERT_EQ(hidden.size(), 2U);
  EXPECT_EQ(hidden[0].sentence,
            "1 member of group 'lab' (Unix group 4000000001) cannot be read: run this with sudo.");
  EXPECT_EQ(hidden[1].sentence,
            "2 members of group 'rack7' (user 4000000000) cannot be read: run this as user "
            "4000000000, or with sudo.");
}

TEST(TopClaims, HideNothingFromTheirUserAndFromRoot) {
  EXPECT_TRUE(find_hidden(parse_claims(kSockets), {}, 0).empty());
  const std::vector<Hidden> hidden = find_hidden(parse_claims(kSockets), {}, kNobodyKnown);
  ASSERT_EQ(hidden.size(), 1U);
  EXPECT_EQ(hidden[0].group, "lab");
}

TEST(TopSelection, NamesTheGroupsAndTablesThatThereAre) {
  const FakeMember a(0, 1);
  const FakeMember b(0, 1, "lab");
  const Sample sample = take_sample(segments_of({&a, &b}), 0, asleep);
  EXPECT_EQ(refusal_of<app::BadInput>({.group = "rack8"}, sample),
            "top: there is no group 'rack8' on this host; groups that you may look at: 'lab', "
            "'rack7'");
  EXPECT_EQ(refusal_of<app::BadInput>({.group = "rack8"}, {}),
            "top: there is no group 'rack8' on this host; groups that you may look at: none");
  EXPECT_EQ(refusal_of<app::BadInput>({.table = "votes"}, sample),
            "top: there is no table 'votes'; tables that are there: 'load'");
  EXPECT_EQ(refusal_of<Error>({.group = "rack7", .table = "load"}, sample), "none");
  EXPECT_EQ(refusal_of<Error>({}, {}), "none");
}

TEST(TopSelection, SaysThatAGroupIsThereButNotForUs) {
  const std::vector<Hidden> hidden = find_hidden(parse_claims(kSockets), {}, 1000);
  EXPECT_EQ(refusal_of<app::BadInput>({.group = "nobody"}, {}, hidden).substr(0, 26),
            "top: there is no group 'no");
  EXPECT_EQ(refusal_of<Error>({.group = "lab"}, {}, hidden),
            "top: 1 member of group 'lab' (Unix group 4000000001) cannot be read: run this with "
            "sudo.");
}

TEST(TopSelection, KeepsWhatWasAskedFor) {
  const FakeMember a(0, 1);
  const FakeMember b(0, 1, "lab");
  Sample sample = take_sample(segments_of({&a, &b}), 0, asleep);
  apply({.group = "lab", .table = "other"}, sample, {{"lab", "hidden."}, {"rack7", "too."}});
  ASSERT_EQ(sample.groups.size(), 1U);
  EXPECT_EQ(sample.groups[0].name, "lab");
  EXPECT_TRUE(sample.groups[0].tables.empty());
  EXPECT_EQ(sample.remarks, std::vector<std::string>{"hidden."});
}

}  // namespace
}  // namespace dunlin::top

#include "group/subgroup_message.hpp"

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/limits.hpp>

#include "support/rounds.hpp"

namespace dunlin::group {
namespace {

using Kind = SubgroupMessage::Kind;

/// With something in every field; `bytes`, which are the rest, are empty.
SubgroupMessage full_message() {
  return {.kind = Kind::propose,
          .name = "name",
          .generation = 7,
          .attempt = 8,
          .good = true,
          .text = "text",
          .received = {9, 10},
          .reports = {{.name = "reported",
                       .attempt = 11,
                       .wants_in = true,
                       .sends = true,
                       .removes = true,
                       .accepted = true,
                       .lacks_state = true,
                       .options = "options",
                       .label = "label",
                       .founders = {"a", "b"},
                       .generation = 12,
                       .members = MemberSet(5),
                       .received = {13},
                       .ends = {{.generation = 14, .trim = {15, 16}}}},
                      {.name = "other"}},
          .changes = {{.name = "changed",
                       .generation = 17,
                       .members = MemberSet(7),
                       .stay = MemberSet(3),
                       .senders = MemberSet(2),
                       .anew = MemberSet(8),
                       .had_members = true,
                       .options = "x",
                       .label = "y",
                       .ends = {{.generation = 18, .trim = {19}}}}}};
}

TEST(SubgroupMessages, MatchTheExampleOfTheirPage) {  // docs/formats/group-control.md
  std::vector<std::byte> expected(41);
  expected[0] = std::byte{3};  // wedge
  expected[4] = std::byte{1};  // the name
  expected[8] = std::byte{'t'};
  expected[9] = std::byte{1};   // change 1
  expected[13] = std::byte{2};  // of view 2
  EXPECT_EQ(encode(SubgroupMessage{
                .kind = Kind::wedge, .name = "t", .generation = std::uint64_t{2} << 32 | 1}),
            expected);
}

TEST(SubgroupMessages, CarryEveryField) {
  SubgroupMessage sent = full_message();
  sent.bytes = {std::byte{20}, std::byte{21}};
  const std::vector<std::byte> bytes = encode(sent);
  const auto read = decode_subgroup(bytes);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->generation, sent.generation);
  EXPECT_EQ(read->attempt, sent.attempt);
  EXPECT_EQ(read->received, sent.received);
  EXPECT_EQ(read->bytes, sent.bytes);
  ASSERT_EQ(read->reports.size(), 2U);
  EXPECT_TRUE(read->reports[0].lacks_state);
  EXPECT_FALSE(read->reports[1].lacks_state);
  EXPECT_TRUE(read->reports[0].accepted);
  EXPECT_FALSE(read->reports[1].accepted);
  EXPECT_EQ(read->reports[0].founders, sent.reports[0].founders);
  EXPECT_EQ(read->reports[0].ends, sent.reports[0].ends);
  ASSERT_EQ(read->changes.size(), 1U);
  EXPECT_EQ(read->changes[0].stay, sent.changes[0].stay);
  EXPECT_EQ(read->changes[0].anew, sent.changes[0].anew);
  EXPECT_TRUE(read->changes[0].had_members);
  EXPECT_EQ(read->changes[0].ends, sent.changes[0].ends);
  EXPECT_EQ(encode(*read), bytes);
}

TEST(SubgroupMessages, CarryThePlacesOfAllMembersThatAViewCanHave) {
  MemberSet some;
  for (const Rank rank : {0U, 63U, 64U, 130U, kMaxViewMembers - 1}) some.add(rank);
  SubgroupMessage sent = full_message();
  sent.reports[0].members = MemberSet::first(200);
  sent.changes[0].members = MemberSet::first(kMaxViewMembers);
  sent.changes[0].stay = some;
  sent.changes[0].senders = MemberSet::only(64);
  sent.changes[0].anew = {};
  const auto read = decode_subgroup(encode(sent));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->reports[0].members, sent.reports[0].members);
  EXPECT_EQ(read->changes[0].members, sent.changes[0].members);
  EXPECT_EQ(read->changes[0].stay, some);
  EXPECT_EQ(read->changes[0].senders, MemberSet::only(64));
  EXPECT_TRUE(read->changes[0].anew.empty());
}

/// The last field of a change without texts and ends is `anew`, with four words here.
TEST(SubgroupMessages, AreRefusedIfASetHasMoreWordsThanThereAre) {
  constexpr std::size_t kBehind = 4 * sizeof(std::uint32_t);  // flag, two texts, number of ends
  const std::vector<std::byte> whole = encode(
      SubgroupMessage{.kind = Kind::propose,
                      .changes = {{.name = "x", .anew = MemberSet::first(kMaxViewMembers)}}});
  EXPECT_TRUE(decode_subgroup(whole).has_value());
  std::vector<std::byte> longer = whole;
  const auto end = longer.end() - static_cast<std::ptrdiff_t>(kBehind);
  const auto count = end - static_cast<std::ptrdiff_t>((4 * 8) + 4);
  ASSERT_EQ(*count, std::byte{4});
  *count = std::byte{5};
  longer.insert(end, 8, std::byte{0});
  EXPECT_FALSE(decode_subgroup(longer).has_value());
}

TEST(SubgroupMessages, AreRefusedIfTheyEndEarlyOrNameWhatCannotBe) {
  const std::vector<std::byte> whole = encode(full_message());
  EXPECT_TRUE(decode_subgroup(whole).has_value());
  for (std::ptrdiff_t bytes = 0; bytes < std::ssize(whole); ++bytes)
    EXPECT_FALSE(decode_subgroup({whole.begin(), whole.begin() + bytes}).has_value()) << bytes;
  std::vector<std::byte> unknown = whole;
  unknown[0] = std::byte{12};
  EXPECT_FALSE(decode_subgroup(unknown).has_value());
  for (const std::string& name : {std::string(), std::string(kMaxSubgroupNameBytes + 1, 'x')}) {
    SubgroupMessage message = full_message();
    message.reports[1].name = name;
    EXPECT_FALSE(decode_subgroup(encode(message)).has_value()) << name;
    message = full_message();
    message.changes[0].name = name;
    EXPECT_FALSE(decode_subgroup(encode(message)).has_value()) << name;
  }
  SubgroupMessage message = full_message();
  message.changes[0].label = std::string(kMaxSubgroupTextBytes + 1, 'x');
  EXPECT_FALSE(decode_subgroup(encode(message)).has_value());
}

/// Whatever a peer writes is read to its end or refused: counts that it cannot hold among it.
TEST(SubgroupMessages, OfDamagedBytesAreRefusedOrReadToTheSameBytesAgain) {
  constexpr std::uint32_t kDamages = 20'000;
  const std::vector<std::byte> whole = encode(full_message());
  std::mt19937_64 random(1);
  std::uint32_t refused = 0;
  std::uint32_t read = 0;
  const auto look_at = [&](std::span<const std::byte> bytes) {
    const auto message = decode_subgroup({bytes.begin(), bytes.end()});
    ++(message ? read : refused);
    if (!message) return;
    const std::vector<std::byte> again = encode(*message);  // flags that nobody knows are gone
    const auto same = decode_subgroup(again);
    ASSERT_TRUE(same.has_value());
    ASSERT_EQ(encode(*same), again);
  };
  for (std::uint32_t round = 0; round < test::rounds(kDamages); ++round) {
    std::vector<std::byte> damaged = whole;
    for (std::uint64_t times = 1 + random() % 4; times > 0; --times)
      damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    if (random() % 4 == 0) damaged.resize(random() % damaged.size());
    look_at(damaged);
    std::vector<std::byte> noise(random() % 200);
    std::ranges::generate(noise, [&] { return static_cast<std::byte>(random()); });
    if (noise.size() >= 4) {  // of a kind that there is
      std::ranges::fill(std::span(noise).first(4), std::byte{0});
      noise[0] = static_cast<std::byte>(random() % 12);
    }
    look_at(noise);
  }
  EXPECT_GT(refused, 0U);
  EXPECT_GT(read, 0U);
}

}  // namespace
}  // namespace dunlin::group

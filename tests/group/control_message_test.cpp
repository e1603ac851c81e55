#include "group/control_message.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace dunlin::group {
namespace {

TEST(ControlMessages, MatchTheExampleOfTheirPage) {  // docs/formats/group-control.md
  std::vector<std::byte> expected(96);
  expected[0] = std::byte{8};   // want
  expected[72] = std::byte{5};  // the view
  expected[80] = std::byte{2};  // the subgroup
  EXPECT_EQ(encode({.kind = ControlMessage::Kind::want, .view = 5, .count = 2}), expected);
}

TEST(ControlMessages, CarryEveryField) {
  const ControlMessage sent{.kind = ControlMessage::Kind::plan,
                            .name = "name",
                            .text = "text",
                            .plan = {.id = 7,
                                     .admission = {.first = 3,
                                                   .newcomers = {{"d", {std::byte{9}}}, {"e", {}}},
                                                   .key = {std::byte{1}, std::byte{2}}}},
                            .members = {{0, "a", {}}, {2, "c", {std::byte{3}}}},
                            .id = 8,
                            .view = 9,
                            .count = 10,
                            .good = true,
                            .ranks = {3, 2},
                            .founders = 4,
                            .bytes = {std::byte{1}, std::byte{2}}};
  const std::vector<std::byte> bytes = encode(sent);
  const auto read = decode(bytes);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->kind, sent.kind);
  ASSERT_EQ(read->plan.admission.newcomers.size(), 2u);
  EXPECT_EQ(read->plan.admission.newcomers[0].endpoint, std::vector{std::byte{9}});
  EXPECT_EQ(read->plan.admission.key, sent.plan.admission.key);
  ASSERT_EQ(read->members.size(), 2u);
  EXPECT_EQ(read->members[1].rank, 2u);
  EXPECT_EQ(read->members[1].name, "c");
  EXPECT_EQ(read->ranks, sent.ranks);
  EXPECT_EQ(read->founders, sent.founders);
  EXPECT_EQ(encode(*read), bytes);
}

TEST(ControlMessages, AreRefusedIfTheyEndEarlyOrContradictThemselves) {
  const std::vector<std::byte> whole = encode({.kind = ControlMessage::Kind::hello, .name = "d"});
  for (std::ptrdiff_t bytes = 0; bytes < std::ssize(whole); ++bytes)
    EXPECT_FALSE(decode({whole.begin(), whole.begin() + bytes}).has_value()) << bytes;
  std::vector<std::byte> unknown = whole;
  unknown[0] = std::byte{13};
  EXPECT_FALSE(decode(unknown).has_value());
}

}  // namespace
}  // namespace dunlin::group

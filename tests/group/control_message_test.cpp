#include "group/control_message.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace dunlin::group {
namespace {

TEST(ControlMessages, MatchTheExampleOfTheirPage) {  // docs/formats/group-control.md
  std::vector<std::byte> expected(64);
  expected[0] = std::byte{8};   // want
  expected[44] = std::byte{5};  // the view
  expected[52] = std::byte{2};  // the subgroup
  EXPECT_EQ(encode({.kind = ControlMessage::Kind::want, .view = 5, .count = 2}), expected);
}

TEST(ControlMessages, CarryEveryField) {
  const ControlMessage sent{.kind = ControlMessage::Kind::plan,
                            .name = "name",
                            .text = "text",
                            .plan = {.id = 7,
                                     .fabric = "fabric",
                                     .address = "address",
                                     .members = {"a", "b", "c"},
                                     .joiners = 2},
                            .id = 8,
                            .view = 9,
                            .count = 10,
                            .good = true,
                            .ranks = {3, 2},
                            .bytes = {std::byte{1}, std::byte{2}}};
  const std::vector<std::byte> bytes = encode(sent);
  const auto read = decode(bytes);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->kind, sent.kind);
  EXPECT_EQ(read->plan.members, sent.plan.members);
  EXPECT_EQ(read->plan.joiners, sent.plan.joiners);
  EXPECT_EQ(read->ranks, sent.ranks);
  EXPECT_EQ(encode(*read), bytes);
}

TEST(ControlMessages, AreRefusedIfTheyEndEarlyOrContradictThemselves) {
  const std::vector<std::byte> whole = encode({.kind = ControlMessage::Kind::hello, .name = "d"});
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(decode(std::span(whole).first(bytes)).has_value()) << bytes;
  ControlMessage contradiction{.kind = ControlMessage::Kind::plan};
  contradiction.plan.members = {"a"};
  contradiction.plan.joiners = 2;
  EXPECT_FALSE(decode(encode(contradiction)).has_value());
  std::vector<std::byte> unknown = whole;
  unknown[0] = std::byte{10};
  EXPECT_FALSE(decode(unknown).has_value());
}

}  // namespace
}  // namespace dunlin::group

#include "multicast/known.hpp"

#include <gtest/gtest.h>

/// What a new member's state holds of a sender whose messages come again.
namespace dunlin::multicast {
namespace {

TEST(Known, CountsMessagesByTheirLastTurns) {
  const Known known{.turns = 10, .parts = {2, 3, 6, 9}};  // messages end at 0, 1, 4, 5, 7 and 8
  EXPECT_EQ(known.messages_from(0), 6U);
  EXPECT_EQ(known.messages_from(3), 4U);
  EXPECT_EQ(known.messages_from(8), 1U);
  EXPECT_EQ(known.messages_from(9), 0U);
  EXPECT_EQ(known.messages_from(10), 0U);
  EXPECT_EQ(known.messages_from(99), 0U);
}

TEST(Known, ReachesAsFarAsWhatWasKnownBefore) {
  Known received{.turns = 5, .parts = {2, 3}};
  received.extend({.turns = 9, .parts = {2, 3, 6}});
  EXPECT_EQ(received.turns, 9U);
  EXPECT_EQ(received.parts, (std::vector<std::uint64_t>{2, 3, 6}));
  received.extend({.turns = 4, .parts = {2}});
  EXPECT_EQ(received.turns, 9U);
  EXPECT_EQ(received.messages_from(5), 3U);
}

TEST(Known, KeepsTheLastPartsOnly) {
  Known known;
  Known more{.turns = 1'000};
  for (std::uint64_t turn = 0; turn < 100; ++turn) more.parts.push_back(turn);
  known.extend(more);
  EXPECT_EQ(known.parts.size(), kMostPartsKnown);
  EXPECT_EQ(known.parts.back(), 99U);
}

}  // namespace
}  // namespace dunlin::multicast

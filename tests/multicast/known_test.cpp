#include "multicast/known.hpp"

#include <gtest/gtest.h>

/// What a new member's state holds of a sender whose messages come again.
namespace dunlin::multicast {
namespace {

TEST(Known, CountsMessagesByTheirLastSlots) {
  const Known known{.slots = 10, .fragments = {2, 3, 6, 9}};  // messages end at 0, 1, 4, 5, 7 and 8
  EXPECT_EQ(known.messages_from(0), 6U);
  EXPECT_EQ(known.messages_from(3), 4U);
  EXPECT_EQ(known.messages_from(8), 1U);
  EXPECT_EQ(known.messages_from(9), 0U);
  EXPECT_EQ(known.messages_from(10), 0U);
  EXPECT_EQ(known.messages_from(99), 0U);
}

TEST(Known, ReachesAsFarAsWhatWasKnownBefore) {
  Known received{.slots = 5, .fragments = {2, 3}};
  received.extend({.slots = 9, .fragments = {2, 3, 6}});
  EXPECT_EQ(received.slots, 9U);
  EXPECT_EQ(received.fragments, (std::vector<std::uint64_t>{2, 3, 6}));
  received.extend({.slots = 4, .fragments = {2}});
  EXPECT_EQ(received.slots, 9U);
  EXPECT_EQ(received.messages_from(5), 3U);
}

TEST(Known, KeepsTheLastPartsOnly) {
  Known known;
  Known more{.slots = 1'000};
  for (std::uint64_t slot = 0; slot < 100; ++slot) more.fragments.push_back(slot);
  known.extend(more);
  EXPECT_EQ(known.fragments.size(), kMaxKnownFragments);
  EXPECT_EQ(known.fragments.back(), 99U);
}

}  // namespace
}  // namespace dunlin::multicast

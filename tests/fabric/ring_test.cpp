#include "ring.hpp"

#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace dunlin {
namespace {

TEST(RingBuffer, GivesBackWhatWasPushedInItsOrder) {
  Ring<int> ring(4);
  int next = 0;
  for (int i = 0; i < 100; ++i) {
    ring.push(i);
    if (ring.size() < 3) continue;
    EXPECT_EQ(ring.front(), next++);
    ring.pop();
  }
  EXPECT_EQ(ring.size(), 2U);
  EXPECT_EQ(ring[0], 98);
  EXPECT_EQ(ring[1], 99);
}

TEST(RingBuffer, IsFullAtTheCapacityThatWasAskedFor) {
  Ring<int> ring(3);
  EXPECT_TRUE(ring.empty());
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(ring.full());
    ring.push(i);
  }
  EXPECT_TRUE(ring.full());
  ring.pop();
  EXPECT_FALSE(ring.full());
}

TEST(RingBuffer, WithoutACapacityHasNoRoom) {
  const Ring<int> ring;
  EXPECT_TRUE(ring.empty());
  EXPECT_TRUE(ring.full());
}

TEST(RingBuffer, GrowsFromAnyPlaceWithoutMixingUpItsElements) {
  for (int before = 0; before < 20; ++before) {
    Ring<std::unique_ptr<int>> ring;
    for (int i = 0; i < before; ++i) {
      ring.push_or_grow(std::make_unique<int>(-1));
      ring.pop();
    }
    for (int i = 0; i < 50; ++i) ring.push_or_grow(std::make_unique<int>(i));
    for (int i = 0; i < 50; ++i, ring.pop()) ASSERT_EQ(*ring.front(), i) << before;
    EXPECT_TRUE(ring.empty());
  }
}

TEST(RingBuffer, KeepsTheNumbersOfItsElementsWhenItGrows) {
  Ring<std::string> ring;
  for (int i = 0; i < 5; ++i) ring.push_or_grow("old");
  for (int i = 0; i < 5; ++i) ring.pop();
  for (int i = 5; i < 40; ++i) ring.push_or_grow(std::to_string(i));
  EXPECT_EQ(ring.popped(), 5U);
  EXPECT_EQ(ring.pushed(), 40U);
  for (std::uint64_t number = ring.popped(); number < ring.pushed(); ++number)
    EXPECT_EQ(ring.at(number), std::to_string(number));
}

TEST(RingBuffer, IsEmptyAfterClearing) {
  Ring<int> ring(2);
  ring.push(1);
  ring.push(2);
  ring.clear();
  EXPECT_TRUE(ring.empty());
  ring.push(3);
  EXPECT_EQ(ring.front(), 3);
}

}  // namespace
}  // namespace dunlin

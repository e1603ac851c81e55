#include "bench/store/many_pairs.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace dunlin::bench {
namespace {

TEST(ManyPairs, DrawsOnWhereTheFormerDrawsEnded) {
  constexpr std::size_t kDraws = 4 * GetBatches::kAtOnce;
  const NextNumber next = uniform_numbers(1000, 7);
  std::vector<std::uint32_t> first, second, whole;
  draw(first, kDraws / 2, next);
  draw(second, kDraws / 2, next);
  draw(whole, kDraws, uniform_numbers(1000, 7));
  EXPECT_NE(first, second);
  first.insert(first.end(), second.begin(), second.end());
  EXPECT_EQ(first, whole);
  EXPECT_LT(std::ranges::max(whole), 1000U);
}

TEST(ManyPairs, DrawsForWholeBatches) {
  std::vector<std::uint32_t> numbers;
  draw(numbers, GetBatches::kAtOnce + 1, uniform_numbers(10, 1));
  EXPECT_EQ(numbers.size(), 2 * GetBatches::kAtOnce);
}

}  // namespace
}  // namespace dunlin::bench

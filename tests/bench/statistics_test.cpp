#include "bench/harness/statistics.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <dunlin/error.hpp>

namespace dunlin::bench {
namespace {

TEST(Statistics, TakesTheMiddleOfAnOddSeries) {
  const std::vector<double> series{9, 1, 5, 3, 7};
  const Summary summary = summarize(series);
  EXPECT_EQ(summary.rounds, 5U);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.median, 5);
  EXPECT_EQ(summary.max, 9);
}

TEST(Statistics, InterpolatesBetweenNeighbours) {
  const std::vector<double> series{10, 20, 30, 40};
  const Summary summary = summarize(series);
  EXPECT_DOUBLE_EQ(summary.median, 25);
  EXPECT_DOUBLE_EQ(summary.p10, 13);
  EXPECT_DOUBLE_EQ(summary.p90, 37);
}

TEST(Statistics, IsNotMovedByOneWildRound) {
  std::vector<double> series(11, 100.0);
  series[4] = 1e9;
  EXPECT_EQ(summarize(series).median, 100);
  EXPECT_EQ(summarize(series).p90, 100);
  EXPECT_EQ(summarize(series).max, 1e9);
}

TEST(Statistics, AcceptsASingleRound) {
  const std::vector<double> one{42};
  EXPECT_EQ(summarize(one).p10, 42);
  EXPECT_EQ(summarize(one).p90, 42);
}

TEST(Statistics, RefusesNothingAndNonsense) {
  EXPECT_THROW((void)summarize({}), Error);
  const std::vector<double> nan{1, std::numeric_limits<double>::quiet_NaN()};
  EXPECT_THROW((void)summarize(nan), Error);
}

TEST(Statistics, ComparesRoundWithRound) {
  const std::vector<double> values{10, 40};
  const std::vector<double> limits{5, 20};
  EXPECT_EQ(ratios(values, limits), (std::vector<double>{2, 2}));
  EXPECT_THROW((void)ratios(values, std::vector<double>{1}), Error);
}

}  // namespace
}  // namespace dunlin::bench

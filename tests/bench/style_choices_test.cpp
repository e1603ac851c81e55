#include "bench/container/style_choices.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace dunlin::bench {
namespace {

constexpr ComponentCosts kCosts{.read_ns = 1'000,
                                .write_ns = 1'000,
                                .compare_swap_ns = 1'000,
                                .fetch_add_ns = 1'000,
                                .message_ns = 1'500};

/// A find costs a read, so it goes one-sided; pushes, of two operations, go by message.
ChoicePoint point_of(const CallCase& which, double one_sided_ns, double message_ns) {
  return {which, 1, 1, 0, {one_sided_ns, message_ns, std::min(one_sided_ns, message_ns)}};
}

/// A point for each case, of which all but pushes are as the model says.
std::vector<Result> judged(double one_sided_push_ns) {
  std::vector<ChoicePoint> points;
  for (const CallCase& which : kCallCases) {
    ChoicePoint point = point_of(which, 0, 0);
    for (std::size_t i = 0; i < kChoiceStyles.size(); ++i)
      point.measured_ns.at(i) =
          predict_ns(kCosts, which.call, kChoiceStyles.at(i), point.situation());
    if (which.call == Call::push) point.measured_ns[0] = one_sided_push_ns;
    points.push_back(point);
  }
  return judge_choices(points, std::vector(points.size(), kCosts));
}

TEST(StyleChoices, AreRightIfThePredictionsAre) {
  const auto results = judged(2'000);
  EXPECT_EQ(results[0].value.median, 100);
  EXPECT_TRUE(results[0].reached().value());
  EXPECT_EQ(results[1].value.median, 1);
  EXPECT_EQ(results[2].value.median, 100);
  EXPECT_EQ(results[3].value.median, 100);
  EXPECT_EQ(results.size(), 5 + kCallCases.size());  // and for one client
}

TEST(StyleChoices, AreWrongIfTheOtherStyleIsFaster) {
  const auto results = judged(750);  // by message: 1,500 ns
  EXPECT_EQ(results[0].value.median, 80);
  EXPECT_FALSE(results[0].reached().value());
  EXPECT_NEAR(results[1].value.median, 2, 1e-9);
  EXPECT_FALSE(results[1].reached().value());
  EXPECT_NE(results[1].note.find("push"), std::string::npos) << results[1].note;
  EXPECT_EQ(results[2].value.median, 80);  // its prediction is not within 10 %
  EXPECT_EQ(results[3].value.median, 100);
}

TEST(StyleChoices, DependOnWhetherTheTargetComputes) {
  ChoicePoint busy = point_of({Call::push, Promise::both}, 2'000, 51'500);
  busy.computing_us = 100;
  std::vector<ChoicePoint> points;
  for (const CallCase& which : kCallCases) {
    points.push_back(busy);
    points.back().which = which;
  }
  EXPECT_EQ(judge_choices(points, std::vector(points.size(), kCosts))[0].value.median, 100);
}

}  // namespace
}  // namespace dunlin::bench

#include <algorithm>
#include <cctype>
#include <cmath>
#include <ostream>
#include <set>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "bench/suites.hpp"

namespace dunlin::bench {

/// For GoogleTest, which else lists an experiment by its bytes.
static void PrintTo(const Experiment& experiment, std::ostream* out) { *out << experiment.title; }

namespace {

const Effort kTiny{.rounds = 2, .quick = true};

/// What a call takes more than another can be less than nothing on a busy machine.
bool plausible(const Summary& summary) {
  return std::isfinite(summary.min) && summary.min <= summary.p10 &&
         summary.p10 <= summary.median && summary.median <= summary.p90 &&
         summary.p90 <= summary.max && std::isfinite(summary.max) && summary.rounds > 0;
}

class EveryFigure : public testing::TestWithParam<Experiment> {};

// Says nothing about speed: only that all parts of the figure are there.
TEST_P(EveryFigure, YieldsResultsWithALimit) {
  const std::vector<Result> results = GetParam().run(kTiny);
  ASSERT_FALSE(results.empty());
  std::set<std::string> seen;
  for (const Result& result : results) {
    EXPECT_TRUE(plausible(result.value)) << GetParam().name;
    EXPECT_FALSE(result.unit.empty());
    EXPECT_FALSE(result.params.empty());
    std::string what = result.limit_name;
    for (const auto& [name, value] : result.params) what += " " + name + "=" + to_text(value);
    EXPECT_TRUE(seen.insert(what).second) << "twice: " << what;
    if (result.goal && result.goal->on == Goal::On::ratio) {
      EXPECT_TRUE(result.ratio.has_value() || !result.note.empty()) << what;
    }
    if (result.ratio) {
      EXPECT_TRUE(plausible(*result.ratio)) << what;
      EXPECT_GT(result.limit->min, 0) << what;
      EXPECT_FALSE(result.limit_name.empty()) << what;
    }
  }
}

std::string name_of(const testing::TestParamInfo<Experiment>& info) {
  std::string name = info.param.name + "_on_" + info.param.fabric;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

std::vector<Experiment> figures_of(std::string_view suite) {
  return std::ranges::find(suites(), suite, &Suite::name)->experiments();
}

INSTANTIATE_TEST_SUITE_P(Container, EveryFigure, testing::ValuesIn(figures_of("container")),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Fabric, EveryFigure, testing::ValuesIn(figures_of("fabric")), name_of);
INSTANTIATE_TEST_SUITE_P(Multicast, EveryFigure, testing::ValuesIn(figures_of("multicast")),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Node, EveryFigure, testing::ValuesIn(figures_of("node")), name_of);
INSTANTIATE_TEST_SUITE_P(Segment, EveryFigure, testing::ValuesIn(figures_of("segment")), name_of);
INSTANTIATE_TEST_SUITE_P(Store, EveryFigure, testing::ValuesIn(figures_of("store")), name_of);
INSTANTIATE_TEST_SUITE_P(Table, EveryFigure, testing::ValuesIn(figures_of("table")), name_of);
INSTANTIATE_TEST_SUITE_P(Topic, EveryFigure, testing::ValuesIn(figures_of("topic")), name_of);

TEST(Figures, HaveNamesOfTheirOwnOnEachFabric) {
  for (const Suite& suite : suites()) {
    std::set<std::string> seen;
    for (const Experiment& experiment : suite.experiments()) {
      EXPECT_TRUE(seen.insert(experiment.name + " " + experiment.fabric).second) << experiment.name;
      EXPECT_FALSE(experiment.title.empty());
    }
  }
}

}  // namespace
}  // namespace dunlin::bench

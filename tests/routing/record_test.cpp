#include "routing/record.hpp"

#include <gtest/gtest.h>

#include "networks.hpp"
#include "routing/print.hpp"

namespace {

using namespace dunlin::routing;
using namespace dunlin::routing::testing_support;

/// The square's link a - b gets dearer; `outcomes` are those of a, Bern, New York and d.
EventRecord record_of(const std::vector<Outcome>& outcomes) {
  const Topology square = from_json(kSquare);
  const auto events = parse_script("s", "cost a b 4", square);
  return make_record(square, events[0], outcomes, 1'000, 400);
}

Outcome installed_at(std::uint64_t ns, std::uint64_t compute_ns) {
  return {.stage = 2,
          .computations = 1,
          .installed_ns = ns,
          .compute_ns = compute_ns,
          .settled_ns = ns + 10};
}
Outcome skipped_at(std::uint64_t ns) { return {.stage = 2, .settled_ns = ns}; }

TEST(Record, TakesTheFirstFromTheRoutersAwayFromTheLinkAndTheLastFromAll) {
  const EventRecord record = record_of({installed_at(1'100, 5), installed_at(1'900, 7),
                                        installed_at(1'300, 9), installed_at(1'600, 11)});
  EXPECT_EQ(record.first_ns, 300U);
  EXPECT_EQ(record.last_ns, 900U);
  EXPECT_EQ(record.last_compute_ns, 7U);
  EXPECT_EQ(record.median_compute_ns, 7U);
  EXPECT_EQ(record.recomputed, 4U);
  EXPECT_EQ(record.at_ns, 600U);
}

TEST(Record, CountsThoseThatCouldTellThatTheyNeedNot) {
  const EventRecord record =
      record_of({installed_at(1'100, 5), skipped_at(1'200), skipped_at(1'700), skipped_at(1'300)});
  EXPECT_EQ(record.recomputed, 1U);
  EXPECT_EQ(record.skipped, 3U);
  EXPECT_FALSE(record.first_ns) << "a is an end of the link";
  EXPECT_EQ(record.last_ns, 100U);
  EXPECT_EQ(record.all_settled_ns, 700U);
}

TEST(Record, HasNoTimesIfNobodyHadToCompute) {
  const EventRecord record =
      record_of({skipped_at(1'100), skipped_at(1'200), skipped_at(1'700), skipped_at(1'300)});
  EXPECT_FALSE(record.first_ns);
  EXPECT_FALSE(record.last_ns);
  EXPECT_EQ(record.skipped, 4U);
}

TEST(Record, MakesTheExitStatusDependOnTheVerdict) {
  RunRecord run;
  EXPECT_NO_THROW(demand_agreement({&run, 1}));
  run.verdict.wrong = 3;
  EXPECT_THROW(demand_agreement({&run, 1}), dunlin::app::VerificationFailed);
}

TEST(Print, ShowsTimesInTheUnitThatFits) {
  EXPECT_EQ(show_time(850), "850 ns");
  EXPECT_EQ(show_time(12'340), "12.3 us");
  EXPECT_EQ(show_time(4'560'000), "4.56 ms");
  EXPECT_EQ(show_time(7'000'000'000), "7.00 s");
  EXPECT_EQ(show_time(std::nullopt), "–");
}

TEST(Print, KeepsTheColumnsInLineAlsoForNamesThatAreNotAscii) {
  Topology square = from_json(kSquare);
  square.routers[0].label = "Århus";
  square.routers[1].label = "東京";
  const EventRecord record = record_of(
      {installed_at(1'100, 5), skipped_at(1'200), skipped_at(1'700), installed_at(1'300, 9)});
  EXPECT_EQ(event_line(square, record, 7),
            "    7  Århus – 東京: 1.5 → 4                               300 ns    300 ns      9 ns"
            "           2        2\n");
}

TEST(Print, SaysWhatDiffers) {
  RunRecord run;
  run.topology = from_json(kSquare);
  run.verdict = {.compared = 12, .wrong = 2, .differences = {"a to d: lost"}};
  EXPECT_EQ(conclusion(run),
            "  WRONG: 2 of 12 routes differ from Boost.Graph:\n    a to d: lost\n    and 1 more\n");
}

}  // namespace

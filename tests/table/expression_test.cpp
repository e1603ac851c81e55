#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/error.hpp>
#include <dunlin/table/expression.hpp>

#include "table/rows.hpp"

namespace dunlin {
namespace {

enum class Mode : std::uint8_t { off, on };
struct Point {
  int x = 0;
  int y = 0;
  int z = 0;
  friend bool operator==(const Point&, const Point&) = default;
};
struct Row {
  Cell<int> step;
  Cell<std::uint64_t> big;
  Cell<double> load;
  Cell<bool> failed;
  Cell<Mode> mode;
  Cell<Point> where;
  std::array<Cell<int>, 3> few;
  std::array<std::array<Cell<std::int16_t>, 2>, 2> grid;
  Versioned<int> config;
};
using Table = Rows<Row>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Table steps(std::initializer_list<int> values, std::size_t mine = 0) {
  Table table(values.size(), mine);
  std::size_t i = 0;
  for (const int value : values) table.at(i++).step = value;
  return table;
}
Table loads(std::initializer_list<double> values) {
  Table table(values.size());
  std::size_t i = 0;
  for (const double value : values) table.at(i++).load = value;
  return table;
}

TEST(Expression, AllHoldsIfEveryRowDoes) {
  EXPECT_TRUE((all(&Row::step) >= 1)(steps({1, 2, 3})));
  EXPECT_FALSE((all(&Row::step) >= 2)(steps({1, 2, 3})));
  EXPECT_TRUE((all(&Row::step) == 4)(steps({4, 4})));
  EXPECT_FALSE((all(&Row::step) != 4)(steps({5, 4})));
  EXPECT_TRUE((all(&Row::step) < 4)(steps({3, -4})));
  EXPECT_FALSE((all(&Row::step) < 3)(steps({3, -4})));
  EXPECT_TRUE((all(&Row::step) > -5)(steps({3, -4})));
  EXPECT_TRUE((all(&Row::step) <= 3)(steps({3, -4})));
}

TEST(Expression, AnyHoldsIfSomeRowDoes) {
  EXPECT_TRUE((any(&Row::step) >= 3)(steps({1, 2, 3})));
  EXPECT_FALSE((any(&Row::step) > 3)(steps({1, 2, 3})));
  EXPECT_TRUE((any(&Row::step) == 2)(steps({1, 2, 3})));
  EXPECT_TRUE((any(&Row::step) != 1)(steps({1, 2})));
  EXPECT_FALSE((any(&Row::step) != 1)(steps({1, 1})));
  EXPECT_TRUE((any(&Row::step) < 0)(steps({1, -1})));
  EXPECT_FALSE((any(&Row::step) <= -2)(steps({1, -1})));
}

TEST(Expression, ComparesIntegersAsNumbersWhateverTheirSigns) {
  Table table(2);
  table.at(0).big = UINT64_MAX;
  EXPECT_TRUE((all(&Row::big) > -1)(table));
  EXPECT_FALSE((any(&Row::big) == -1)(table));
  EXPECT_TRUE((all(&Row::step) < UINT64_MAX)(steps({-1, 1})));
  EXPECT_TRUE((all(&Row::step) == std::int64_t{0})(table));
}

TEST(Expression, NaNIsNeitherLessNorMoreNorEqual) {
  const Table table = loads({kNan, 2.0});
  EXPECT_FALSE((all(&Row::load) >= 1.0)(table));
  EXPECT_FALSE((all(&Row::load) <= 3.0)(table));
  EXPECT_FALSE((all(&Row::load) < 3.0)(table));
  EXPECT_FALSE((all(&Row::load) > 1.0)(table));
  const Table only = loads({kNan});
  EXPECT_FALSE((any(&Row::load) >= 1.0)(only));
  EXPECT_FALSE((any(&Row::load) <= 1.0)(only));
  EXPECT_FALSE((any(&Row::load) == kNan)(only));
  EXPECT_TRUE((any(&Row::load) != 1.0)(only));
  EXPECT_EQ(count(where(&Row::load) >= 0.0).value(table), 1U);
}

TEST(Expression, ComparesTruthsEnumerationsAndStructs) {
  Table table(2);
  table.at(1).failed = true;
  table.at(1).mode = Mode::on;
  table.at(1).where = Point{1, 2, 3};
  EXPECT_TRUE((any(&Row::failed) == true)(table));
  EXPECT_FALSE((all(&Row::failed) == true)(table));
  EXPECT_TRUE((any(&Row::failed) == 1)(table));
  EXPECT_TRUE((any(&Row::mode) == Mode::on)(table));
  EXPECT_FALSE((all(&Row::mode) == Mode::on)(table));
  EXPECT_TRUE((any(&Row::where) == Point{1, 2, 3})(table));
  EXPECT_TRUE((any(&Row::where) != Point{1, 2, 3})(table));
}

TEST(Expression, TakesArraysEntryByEntry) {
  Table table(2);
  EXPECT_TRUE((all(&Row::few) == 0)(table));
  table.at(1).few[2] = 5;
  table.at(0).grid[1][1] = std::int16_t{-7};
  EXPECT_FALSE((all(&Row::few) == 0)(table));
  EXPECT_TRUE((any(&Row::few) == 5)(table));
  EXPECT_EQ(max(&Row::few).value(table), 5);
  EXPECT_EQ(sum(&Row::grid).value(table), -7);
  EXPECT_EQ(count(where(&Row::few) == 0).value(table), 1U) << "rows in which all entries do";
}

TEST(Expression, SeesTheNewestOfAVersionedColumn) {
  Table table(2);
  table.at(0).config = 3;
  table.at(1).config = 4;
  EXPECT_EQ(min(&Row::config).value(table), 3);
  EXPECT_TRUE((all(&Row::config) >= 3)(table));
}

TEST(Expression, IsNarrowedToSomeRows) {
  Table table = steps({0, 1, 2, 3}, 3);
  EXPECT_TRUE((all(&Row::step).over({1, 2}) >= 1)(table));
  EXPECT_FALSE((any(&Row::step).over({1, 2}) == 3)(table));
  EXPECT_EQ(sum(&Row::step).over({0, 3}).value(table), 3);
  EXPECT_FALSE((any(&Row::step).others() == 3)(table));
  EXPECT_EQ(max(&Row::step).others().value(table), 2);
  table.kill(2);
  EXPECT_FALSE((any(&Row::step).alive() == 2)(table));
  EXPECT_EQ(max(&Row::step).others().alive().value(table), 1);
  EXPECT_EQ(max(&Row::step).over({2, 3}).alive().value(table), 3);
  EXPECT_EQ(count(where(&Row::step).alive() >= 0).value(table), 3U);
  EXPECT_EQ(count(where(&Row::step).over({0, 1}) >= 1).value(table), 1U);
}

TEST(Expression, AnEmptyListOfRowsIsNoRows) {
  const Table table = steps({1, 2, 3});
  const std::vector<std::uint32_t> none;
  EXPECT_TRUE((all(&Row::step).over(none) == 7)(table));
  EXPECT_FALSE((any(&Row::step).over(none) == 1)(table));
  EXPECT_EQ(sum(&Row::step).over(none).value(table), 0);
  EXPECT_EQ(max(&Row::step).over(none).others().alive().value(table), INT32_MIN);
  EXPECT_EQ(count(where(&Row::step).over(none) >= 0).value(table), 0U);
  EXPECT_EQ((all(&Row::step).over(none) == 7).entries(table), 0U);
  EXPECT_EQ((all(&Row::step).over(none) == 7).describe(table), "all(step of no rows) == 7");
}

TEST(Expression, OthersLeavesOutTheOwnRowWhereverItIs) {
  for (std::size_t mine = 0; mine < 3; ++mine) {
    Table table = steps({1, 1, 1}, mine);
    table.at(mine).step = 9;
    EXPECT_TRUE((all(&Row::step).others() == 1)(table)) << mine;
    EXPECT_EQ(sum(&Row::step).others().value(table), 2) << mine;
  }
}

TEST(Expression, ReducesColumns) {
  EXPECT_EQ(min(&Row::step).value(steps({3, -1, 2})), -1);
  EXPECT_EQ(max(&Row::step).value(steps({-3, -1, -2})), -1);
  EXPECT_EQ(sum(&Row::step).value(steps({3, -1, 2})), 4);
  EXPECT_TRUE((min(&Row::load) < 0.5)(loads({1.0, 0.25})));
  EXPECT_DOUBLE_EQ(sum(&Row::load).value(loads({1.0, 0.25})), 1.25);
  EXPECT_EQ(sum(&Row::failed).value(Table(3)), 0U);
}

TEST(Expression, ReducesInfinitiesAndLeavesOutNaN) {
  EXPECT_EQ(min(&Row::load).value(loads({kInfinity, kInfinity})), kInfinity);
  EXPECT_EQ(max(&Row::load).value(loads({-kInfinity})), -kInfinity);
  EXPECT_EQ(min(&Row::load).value(loads({kNan, 2.0, kNan})), 2.0);
}

TEST(Expression, SumsWrapAround) {
  EXPECT_EQ(sum(&Row::step).value(steps({INT32_MAX, INT32_MAX})), std::int64_t{2} * INT32_MAX);
  Table table(2);
  table.at(0).big = UINT64_MAX;
  table.at(1).big = std::uint64_t{3};
  EXPECT_EQ(sum(&Row::big).value(table), 2U);
}

TEST(Expression, ReductionsOverNoRowsAreNeutral) {
  const Table alone(1);
  EXPECT_EQ(min(&Row::step).others().value(alone), INT32_MAX);
  EXPECT_EQ(max(&Row::step).others().value(alone), INT32_MIN);
  EXPECT_EQ(sum(&Row::step).others().value(alone), 0);
  EXPECT_EQ(min(&Row::load).others().value(alone), kInfinity);
  EXPECT_TRUE((all(&Row::step).others() == 7)(alone));
  EXPECT_FALSE((any(&Row::step).others() == 0)(alone));
}

TEST(Expression, ComparesWithTheOwnRowAnotherRowAndVariables) {
  Table table = steps({5, 6, 7}, 1);
  EXPECT_FALSE((all(&Row::step) >= mine(&Row::step))(table));
  EXPECT_TRUE((any(&Row::step) == mine(&Row::step))(table));
  EXPECT_TRUE((all(&Row::step) >= row(0, &Row::step))(table));
  EXPECT_TRUE((row(2, &Row::step) == 7)(table));
  EXPECT_TRUE((mine(&Row::step) != 7)(table));
  EXPECT_TRUE((min(&Row::step) < max(&Row::step))(table));
  int last_seen = 4;
  const auto newer = min(&Row::step) > std::cref(last_seen);
  EXPECT_TRUE(newer(table));
  last_seen = 5;
  EXPECT_FALSE(newer(table)) << "the variable is looked at each time";
  const auto all_newer = all(&Row::step) > std::ref(last_seen);
  EXPECT_FALSE(all_newer(table));
  table.at(1).step = 4;
  EXPECT_TRUE((all(&Row::step) >= mine(&Row::step))(table)) << "and so is the own row";
}

TEST(Expression, CountsRows) {
  const Table table = steps({1, 2, 2, 3});
  EXPECT_EQ(count(where(&Row::step) == 2).value(table), 2U);
  EXPECT_TRUE((count(where(&Row::step) >= 2) >= 3)(table));
  EXPECT_FALSE((count(where(&Row::step) >= 2) == 4U)(table));
}

TEST(Expression, IsCombined) {
  const Table table = steps({1, 2});
  const auto yes = all(&Row::step) >= 1;
  const auto no = any(&Row::step) > 2;
  EXPECT_TRUE((yes && !no)(table));
  EXPECT_FALSE((yes && no)(table));
  EXPECT_TRUE((yes || no)(table));
  EXPECT_FALSE((no || !yes)(table));
  EXPECT_TRUE(((no || yes) && (min(&Row::step) == 1) && !(row(0, &Row::step) == 2))(table));
}

TEST(Expression, DescribesItself) {
  const Table table(4);
  int variable = 0;
  EXPECT_EQ((all(&Row::step) >= 1).describe(table), "all(step) >= 1");
  EXPECT_EQ((any(&Row::failed) == true).describe(table), "any(failed) == true");
  EXPECT_EQ((all(&Row::step) != mine(&Row::step)).describe(table), "all(step) != mine.step");
  EXPECT_EQ((row(3, &Row::step) < 5).describe(table), "row 3.step < 5");
  EXPECT_EQ((min(&Row::big) > std::cref(variable)).describe(table), "min(big) > (variable)");
  EXPECT_EQ((max(&Row::step).over({1, 2}) <= 5).describe(table), "max(step of rows 1,2) <= 5");
  EXPECT_EQ((sum(&Row::few).others().alive() == 5).describe(table),
            "sum(few of others alive) == 5");
  EXPECT_EQ((count(where(&Row::mode) == Mode::on) >= 2).describe(table),
            "count(mode == (value)) >= 2");
  EXPECT_EQ(((all(&Row::step) == 1) && !((any(&Row::step) > 7) || (mine(&Row::step) == 0)))
                .describe(table),
            "(all(step) == 1) && (!((any(step) > 7) || (mine.step == 0)))");
}

TEST(Expression, DescribesWhichRowsItIsAbout) {
  const Table table(4);
  EXPECT_EQ((all(&Row::step).over({1, 2}).alive() == 1).describe(table),
            "all(step of rows 1,2 alive) == 1");
  EXPECT_EQ((all(&Row::step).over({1, 2}).others() == 1).describe(table),
            "all(step of rows 1,2 others) == 1");
  EXPECT_EQ((all(&Row::step).others() == 1).describe(table), "all(step of others) == 1");
  EXPECT_EQ((all(&Row::step).others().alive() == 1).describe(table),
            "all(step of others alive) == 1");
  EXPECT_EQ((all(&Row::step).alive() == 1).describe(table), "all(step of alive) == 1");
}

TEST(Expression, KnowsHowManyEntriesItReads) {
  const Table table(10);
  EXPECT_EQ((all(&Row::step) >= 1).entries(table), 10U);
  EXPECT_EQ((all(&Row::few) >= mine(&Row::step)).entries(table), 31U);
  EXPECT_EQ((any(&Row::grid).over({1, 2}) == 1).entries(table), 8U);
  EXPECT_EQ((row(1, &Row::step) == row(2, &Row::step)).entries(table), 2U);
  EXPECT_EQ(((min(&Row::step) == 1) && (count(where(&Row::step) == 1) == 1)).entries(table), 20U);
}

TEST(Expression, RefusesRowsThatDoNotExist) {
  const Table table(3);
  const auto refusal = [&](const auto& expression) -> std::string {
    try {
      static_cast<void>(expression.entries(table));
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal(all(&Row::step).over({0, 3}) == 1),
            "predicate: there is no row 3; the table has rows 0 to 2");
  EXPECT_NE(refusal(row(7, &Row::step) == 1), "accepted");
  EXPECT_NE(refusal(sum(&Row::step).over({9}) == 1), "accepted");
  EXPECT_NE(refusal(count(where(&Row::step).over({9}) == 1) == 1), "accepted");
  EXPECT_EQ(refusal(row(2, &Row::step) == 1), "accepted");
}

/// Long arrays are compared many entries at a time; short ones one by one.
template <class T, std::size_t N>
struct LongRow {
  Cell<std::uint8_t> before;  // so that the array begins anywhere in its line
  std::array<Cell<T>, N> entries;
};

template <class T, std::size_t N>
void compare_long_arrays() {
  using Long = LongRow<T, N>;
  Rows<Long> table(2);
  const auto all_of = [](T v) { return all(&Long::entries) >= v; };
  const auto any_of = [](T v) { return any(&Long::entries) == v; };
  for (std::size_t r = 0; r < 2; ++r) {
    for (auto& entry : table.at(r).entries) entry = T{7};
  }
  EXPECT_TRUE(all_of(T{7})(table));
  EXPECT_FALSE(any_of(T{5})(table));
  for (std::size_t i = 0; i < N; ++i) {
    table.at(1).entries[i] = T{5};
    ASSERT_FALSE(all_of(T{7})(table)) << "entry " << i << " of " << N;
    ASSERT_TRUE(any_of(T{5})(table)) << "entry " << i << " of " << N;
    ASSERT_TRUE((all(&Long::entries) <= T{7})(table));
    ASSERT_TRUE((all(&Long::entries) < 1e3)(table)) << "a value of another type";
    ASSERT_FALSE((all(&Long::entries) != T{5})(table));
    ASSERT_FALSE((any(&Long::entries) > T{7})(table));
    table.at(1).entries[i] = T{7};
  }
}

TEST(Expression, ComparesLongArraysAsItDoesShortOnes) {
  compare_long_arrays<std::int8_t, 1>();
  compare_long_arrays<std::int8_t, 64>();
  compare_long_arrays<std::uint8_t, 131>();
  compare_long_arrays<std::int16_t, 32>();
  compare_long_arrays<std::uint16_t, 77>();
  compare_long_arrays<std::int32_t, 16>();
  compare_long_arrays<std::uint32_t, 33>();
  compare_long_arrays<std::int64_t, 8>();
  compare_long_arrays<std::uint64_t, 9>();
  compare_long_arrays<std::uint64_t, 23>();
  compare_long_arrays<float, 35>();
  compare_long_arrays<double, 19>();
}

TEST(Expression, ComparesLongArraysOfUnsignedNumbersBeyondTheSignedOnes) {
  using Long = LongRow<std::uint64_t, 16>;
  Rows<Long> table(1);
  for (auto& entry : table.at(0).entries) entry = UINT64_MAX;
  EXPECT_TRUE((all(&Long::entries) > std::uint64_t{1})(table));
  EXPECT_TRUE((all(&Long::entries) > -1)(table));
  EXPECT_FALSE((any(&Long::entries) < 0)(table));
}

TEST(Expression, ComparesLongArraysWithNaN) {
  using Long = LongRow<double, 16>;
  Rows<Long> table(1);
  EXPECT_TRUE((all(&Long::entries) >= 0.0)(table));
  table.at(0).entries[11] = kNan;
  EXPECT_FALSE((all(&Long::entries) >= 0.0)(table));
  EXPECT_FALSE((all(&Long::entries) <= 0.0)(table));
  EXPECT_TRUE((any(&Long::entries) >= 0.0)(table));
  for (auto& entry : table.at(0).entries) entry = kNan;
  EXPECT_FALSE((any(&Long::entries) >= 0.0)(table));
  EXPECT_FALSE((any(&Long::entries) < 0.0)(table));
  EXPECT_TRUE((any(&Long::entries) != 0.0)(table));
}

}  // namespace
}  // namespace dunlin

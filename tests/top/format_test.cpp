#include "top/format.hpp"

#include <gtest/gtest.h>

#include "top/process.hpp"

namespace dunlin::top {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kS = 1000 * kMs;

TEST(TopFormat, ShowsLatenciesInTheUnitThatFits) {
  EXPECT_EQ(latency_text(0), "0 ns");
  EXPECT_EQ(latency_text(999), "999 ns");
  EXPECT_EQ(latency_text(1'234), "1.2 us");
  EXPECT_EQ(latency_text(55'800), "56 us");
  EXPECT_EQ(latency_text(999'600), "1.0 ms");
  EXPECT_EQ(latency_text(1'500'000'000), "1.5 s");
}

TEST(TopFormat, GivesDurationsInTheUnitThatFits) {
  EXPECT_EQ(duration_text(0), "0 ms");
  EXPECT_EQ(duration_text(12 * kMs), "12 ms");
  EXPECT_EQ(duration_text(999 * kMs + kMs / 2), "1.0 s");
  EXPECT_EQ(duration_text(4200 * kMs), "4.2 s");
  EXPECT_EQ(duration_text(42 * kS), "42 s");
  EXPECT_EQ(duration_text(119 * kS), "1 min");
  EXPECT_EQ(duration_text(3 * 3600 * kS + 1800 * kS), "3.5 h");
  EXPECT_EQ(duration_text(9 * 86400 * kS), "9 d");
}

TEST(TopFormat, GivesRatesWithTwoDigitsOrThree) {
  EXPECT_EQ(rate_text(std::nullopt), "-");
  EXPECT_EQ(rate_text(0), "0");
  EXPECT_EQ(rate_text(0.01), "<0.1");
  EXPECT_EQ(rate_text(0.3), "0.3");
  EXPECT_EQ(rate_text(216.4), "216");
  EXPECT_EQ(rate_text(999.6), "1.0 k");
  EXPECT_EQ(rate_text(1.23e6), "1.2 M");
  EXPECT_EQ(rate_text(57e9), "57 G");
}

TEST(TopFormat, GivesCountsInFullAsLongAsOneCanReadThem) {
  EXPECT_EQ(count_text(9'999'999), "9999999");
  EXPECT_EQ(count_text(123'000'000), "123 M");
}

TEST(TopFormat, LetsNoControlCharacterOfOthersThrough) {
  EXPECT_EQ(printable("a\x1b[2Jb\n\x7f\xc3\xa9"), "a?[2Jb????");
}

TEST(TopFormat, CutsToTheWidthAndShowsThatItDid) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdef", 5), "abc..");
  EXPECT_EQ(shortened("abcdef", 1), ".");
  EXPECT_EQ(shortened("abcdef", 0), "");
}

TEST(TopFormat, ShowsTheFirstValuesOfAColumnAndTheLastOfAList) {
  const Column column{.name = "c",
                      .kind = ColumnKind::word,
                      .type = EntryType::u64,
                      .offset = 0,
                      .count = 4,
                      .entry_bytes = 8,
                      .stride_bytes = 8,
                      .bytes = 32};
  Column list = column;
  list.kind = ColumnKind::list;
  ColumnValues values;
  for (std::uint64_t i = 10; i < 14; ++i) values.entries.emplace_back(i);
  EXPECT_EQ(values_text(column, values, 20), "10 11 12 13");
  EXPECT_EQ(values_text(column, values, 8), "10 11 ..");
  values.begin = 5;
  values.end = 9;
  EXPECT_EQ(values_text(list, values, 30), "[5..9) 10 11 12 13");
  EXPECT_EQ(values_text(list, values, 16), "[5..9) .. 12 13");
  values.begin = 1;
  EXPECT_EQ(values_text(list, values, 30), "[1..9) .. 10 11 12 13") << "the first are not shown";
}

TEST(TopFormat, TellsEmptyTextAndUnreadableEntriesApart) {
  EXPECT_EQ(value_text(std::string()), "\"\"");
  EXPECT_EQ(value_text(Value()), "?");
  EXPECT_EQ(value_text(true), "true");
  EXPECT_EQ(value_text(0.1 + 0.2), "0.3");
  EXPECT_EQ(value_text(Bytes{std::byte{0x0a}, std::byte{0xff}}), "0aff");
}

TEST(TopProcess, ReadsTheKernelsLineEvenIfTheCommandLooksLikeOne) {
  const auto process = parse_process(
      "42 (a) S (b) T 1 42 42 0 -1 4194304 100 0 0 0 7 5 0 0 20 0 1 0 12345 1000 200 "
      "18446744073709551615");
  ASSERT_TRUE(process);
  EXPECT_EQ(process->command, "a) S (b");
  EXPECT_EQ(process->state, 'T');
  EXPECT_EQ(process->cpu_ticks, 12U);
  EXPECT_EQ(process->born_ticks, 12345U);
}

TEST(TopProcess, IsNothingIfThereIsNone) {
  EXPECT_FALSE(parse_process(""));
  EXPECT_FALSE(parse_process("42 (cut) S 1"));
  EXPECT_FALSE(parse_process("42 )wrong( S 1"));
  EXPECT_TRUE(read_process(getpid()));
  EXPECT_FALSE(read_process(-1));
}

}  // namespace
}  // namespace dunlin::top

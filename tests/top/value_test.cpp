#include "top/value.hpp"

#include <cstring>

#include <gtest/gtest.h>

#include "top/fake_group.hpp"

namespace dunlin::top {
namespace {

struct Numbers {
  Cell<bool> yes{true};
  Cell<std::int8_t> i8{-8};
  Cell<std::int16_t> i16{-16};
  Cell<std::int32_t> i32{-32};
  Cell<std::int64_t> i64{-64};
  Cell<std::uint8_t> u8{8};
  Cell<std::uint16_t> u16{16};
  Cell<std::uint32_t> u32{32};
  Cell<std::uint64_t> u64{UINT64_MAX};
  Cell<float> f32{0.1F};
  Cell<double> f64{0.1};
};

/// What a damaged or dying writer may leave.
template <class T>
void overwrite(void* at, std::size_t offset, const T& with) {
  std::memcpy(static_cast<std::byte*>(at) + offset, &with, sizeof with);
}

template <class Row>
ColumnValues read(const Row& row, std::string_view name) {
  const Layout layout = layout_of<Row>();
  for (const Column& c : layout.columns) {
    if (c.name == name) return read_column(c, reinterpret_cast<const std::byte*>(&row));
  }
  throw Error("no such column");
}
template <class T, class Row>
T one(const Row& row, std::string_view name) {
  return std::get<T>(read(row, name).entries.at(0));
}

TEST(TopValues, AreOfTheTypesThatTheLayoutNames) {
  const Numbers row;
  EXPECT_TRUE(one<bool>(row, "yes"));
  EXPECT_EQ(one<std::int64_t>(row, "i8"), -8);
  EXPECT_EQ(one<std::int64_t>(row, "i16"), -16);
  EXPECT_EQ(one<std::int64_t>(row, "i32"), -32);
  EXPECT_EQ(one<std::int64_t>(row, "i64"), -64);
  EXPECT_EQ(one<std::uint64_t>(row, "u8"), 8U);
  EXPECT_EQ(one<std::uint64_t>(row, "u16"), 16U);
  EXPECT_EQ(one<std::uint64_t>(row, "u32"), 32U);
  EXPECT_EQ(one<std::uint64_t>(row, "u64"), UINT64_MAX);
  EXPECT_EQ(one<double>(row, "f32"), 0.1) << "the shortest decimal that is this float";
  EXPECT_EQ(one<double>(row, "f64"), 0.1);
}

TEST(TopValues, HaveTextsUpToTheirFirstZeroAndAllBytesOfTheRest) {
  FakeRow row;
  row.city = std::array<char, 8>{'O', 's', 'l', 'o'};
  EXPECT_EQ(one<std::string>(row, "city"), "Oslo");
  row.stamps = std::array<std::uint64_t, 3>{1, 2, 3};
  const auto bytes = one<Bytes>(row, "stamps");
  ASSERT_EQ(bytes.size(), 24U);
  EXPECT_EQ(bytes[8], std::byte{2});
}

TEST(TopValues, OfAColumnOfSeveralComeInOrder) {
  FakeRow row;
  row.votes[2] = 7;
  const ColumnValues values = read(row, "votes");
  ASSERT_EQ(values.entries.size(), 3U);
  EXPECT_EQ(std::get<std::uint64_t>(values.entries[2]), 7U);
}

TEST(TopValues, ComeFromTheOlderSlotWhileTheNewerIsTorn) {
  FakeRow row;
  row.stamps = std::array<std::uint64_t, 3>{1, 1, 1};  // stamp 1, in slot 1
  overwrite(&row.stamps, kCacheLineBytes, std::uint32_t{9});
  EXPECT_EQ(one<Bytes>(row, "stamps"), Bytes(24)) << "the initial value";
}

TEST(TopValues, AreNothingIfBothSlotsStayTorn) {
  FakeRow row;
  overwrite(&row.stamps, 0, std::uint32_t{9});
  overwrite(&row.stamps, kCacheLineBytes, std::uint32_t{9});
  EXPECT_TRUE(std::holds_alternative<std::monostate>(read(row, "stamps").entries.at(0)));
}

TEST(TopValues, OfAListAreTheLastOnesWithTheRangeThatIsThere) {
  FakeRow row;
  for (std::uint32_t i = 0; i < 6; ++i) {
    row.events.truncate_before(i < 3 ? 0 : i - 3);
    ASSERT_TRUE(row.events.append(100 + i));
  }
  row.events.truncate_before(3);
  const ColumnValues values = read(row, "events");
  EXPECT_EQ(values.begin, 3U);
  EXPECT_EQ(values.end, 6U);
  ASSERT_EQ(values.entries.size(), 3U);
  EXPECT_EQ(std::get<std::uint64_t>(values.entries[0]), 103U);
  EXPECT_EQ(std::get<std::uint64_t>(values.entries[2]), 105U);
}

TEST(TopValues, OfAListWithImpossibleGuardsAreAtMostAsManyAsItHolds) {
  FakeRow row;
  overwrite(&row.events, 0, std::array<std::uint64_t, 2>{5, UINT64_MAX});
  EXPECT_EQ(read(row, "events").entries.size(), 4U);
  overwrite(&row.events, 0, std::array<std::uint64_t, 2>{UINT64_MAX, 5});
  EXPECT_TRUE(read(row, "events").entries.empty());
}

TEST(TopValues, AreBytesIfTheLayoutCallsThemANumberOfAnotherSize) {
  const Column column{.name = "odd",
                      .kind = ColumnKind::word,
                      .type = EntryType::f64,
                      .offset = 0,
                      .count = 1,
                      .entry_bytes = 3,
                      .stride_bytes = 4,
                      .bytes = 4};
  const std::uint64_t word = 0x01020304;
  const ColumnValues values = read_column(column, reinterpret_cast<const std::byte*>(&word));
  EXPECT_EQ(std::get<Bytes>(values.entries.at(0)),
            (Bytes{std::byte{4}, std::byte{3}, std::byte{2}}));
}

}  // namespace
}  // namespace dunlin::top

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/table/cell.hpp>

namespace dunlin {
namespace {

struct Event {
  std::uint64_t number = 0;
  std::array<std::uint8_t, 70> text{};  // longer than a line
  friend bool operator==(const Event&, const Event&) = default;
};
Event event(std::uint64_t number) {
  Event e{.number = number};
  e.text.fill(static_cast<std::uint8_t>(number));
  return e;
}

template <class T, std::size_t N>
void set_guards(List<T, N>& list, std::uint64_t begin, std::uint64_t end) {
  std::memcpy(reinterpret_cast<std::byte*>(&list) + kListBeginOffset, &begin, sizeof begin);
  std::memcpy(reinterpret_cast<std::byte*>(&list) + kListEndOffset, &end, sizeof end);
}

template <class T, std::size_t N>
std::vector<std::uint64_t> indices(const List<T, N>& list, std::uint64_t from = 0) {
  std::vector<std::uint64_t> seen;
  list.visit_from(from, [&](std::uint64_t i, const T&) { seen.push_back(i); });
  return seen;
}

TEST(List, StartsEmpty) {
  const List<int, 4> list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.size(), 0U);
  EXPECT_EQ(list.begin_index(), 0U);
  EXPECT_EQ(list.end_index(), 0U);
  EXPECT_FALSE(list.at(0));
  EXPECT_EQ(list.visit_from(0, [](auto, int) { FAIL(); }), 0U);
}

TEST(List, KeepsWhatIsAppendedUnderItsIndex) {
  List<Event, 8> list;
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_TRUE(list.append(event(i)));
  EXPECT_EQ(list.size(), 8U);
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(list.at(i), event(i));
  EXPECT_FALSE(list.at(8));
}

TEST(List, SaysWhenItIsFullAndStaysAsItWas) {
  List<int, 3> list;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(list.append(i));
  EXPECT_FALSE(list.append(99));
  EXPECT_EQ(list.size(), 3U);
  EXPECT_EQ(list.at(0), 0);
  list.truncate_before(1);
  EXPECT_TRUE(list.append(3));
  EXPECT_FALSE(list.append(99));
  EXPECT_EQ(list.at(3), 3);
}

TEST(List, ForgetsWhatIsTruncatedAndNothingElse) {
  List<int, 4> list;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(list.append(i * 10));
  list.truncate_before(2);
  EXPECT_FALSE(list.at(0));
  EXPECT_FALSE(list.at(1));
  EXPECT_EQ(list.at(2), 20);
  EXPECT_EQ(list.size(), 2U);
  list.truncate_before(1);
  EXPECT_EQ(list.begin_index(), 2U) << "it does not come back";
  list.truncate_before(100);
  EXPECT_EQ(list.begin_index(), 4U) << "no further than the end";
  EXPECT_TRUE(list.empty());
}

TEST(List, KeepsItsIndicesAcrossManyTurns) {
  List<std::uint64_t, 5> list;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    if (!list.append(i * i)) {
      list.truncate_before(i - 3);
      ASSERT_TRUE(list.append(i * i));
    }
    ASSERT_EQ(list.at(i), i * i);
    ASSERT_EQ(list.end_index(), i + 1);
  }
}

TEST(List, VisitsWhatIsThereFromAnIndexOn) {
  List<int, 4> list;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(list.append(i));
  list.truncate_before(1);
  EXPECT_EQ(indices(list), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(indices(list, 3), (std::vector<std::uint64_t>{3}));
  EXPECT_EQ(list.visit_from(0, [](auto, int) {}), 4U);
  EXPECT_TRUE(indices(list, 4).empty());
  EXPECT_EQ(list.visit_from(9, [](auto, int) { FAIL(); }), 9U);
}

TEST(List, HoldsSingleBytesAndSingleValues) {
  List<std::uint8_t, 1> list;
  for (std::uint64_t i = 0; i < 10; ++i) {
    EXPECT_TRUE(list.append(static_cast<std::uint8_t>(i)));
    EXPECT_FALSE(list.append(0));
    EXPECT_EQ(list.at(i), i);
    list.truncate_before(i + 1);
  }
}

TEST(List, ItsCopyHoldsTheSameUnderTheSameIndices) {
  List<Event, 4> list;
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(list.append(event(i)));
  list.truncate_before(3);
  for (std::uint64_t i = 4; i < 6; ++i) EXPECT_TRUE(list.append(event(i)));
  const List<Event, 4> copy = list;
  EXPECT_EQ(indices(copy), (std::vector<std::uint64_t>{3, 4, 5}));
  for (std::uint64_t i = 3; i < 6; ++i) EXPECT_EQ(copy.at(i), event(i));
}

/// Guards that no list could have come to: begin, end.
class BrokenList : public testing::TestWithParam<std::pair<std::uint64_t, std::uint64_t>> {};

TEST_P(BrokenList, IsReadInBoundedTime) {
  List<Event, 8> list;
  set_guards(list, GetParam().first, GetParam().second);
  EXPECT_LE(list.size(), 8U);
  EXPECT_LE(indices(list).size(), 8U);
  EXPECT_LE(indices(list, GetParam().second - 20).size(), 8U);
  for (const std::uint64_t i : {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{8}, UINT64_MAX}) {
    static_cast<void>(list.at(i));
  }
  const List<Event, 8> copy = list;
  EXPECT_LE(indices(copy).size(), 8U);
}

INSTANTIATE_TEST_SUITE_P(
    Guards, BrokenList,
    testing::Values(std::pair(std::uint64_t{0}, UINT64_MAX),
                    std::pair(UINT64_MAX, std::uint64_t{0}), std::pair(UINT64_MAX, UINT64_MAX),
                    std::pair(UINT64_MAX - 3, UINT64_MAX),
                    std::pair(std::uint64_t{5}, std::uint64_t{3}),
                    std::pair(std::uint64_t{0}, std::uint64_t{9}),
                    std::pair(std::uint64_t{1} << 63, (std::uint64_t{1} << 63) + 100)));

}  // namespace
}  // namespace dunlin

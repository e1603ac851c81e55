#include "group/row_format.hpp"

#include <array>
#include <cstring>

#include <gtest/gtest.h>

namespace dunlin::group {
namespace {

constexpr std::uint32_t kMembers = 3;
constexpr std::size_t kCounts = 2;

struct RowFormatTest : testing::Test {
  RowFormat format{kMembers, kCounts, "text"};
  alignas(kCacheLineBytes) std::array<std::byte, 1024> memory{};
  Row read;

  static Row some_row() {
    return {.suspects = MemberSet(0b100),
            .leaving = true,
            .received = {7, UINT64_MAX},
            .promised = 2,
            .proposal = {.survivors = MemberSet(0b011), .plan = 56, .trim = {4, 1}},
            .accepted = 1,
            .ended = true};
  }
  void spoil(const char* column, std::uint64_t with) {
    for (const Column& each : format.layout().columns)
      if (each.name == column) std::memcpy(memory.data() + each.offset, &with, sizeof with);
  }
};

TEST_F(RowFormatTest, ReadsWhatWasWritten) {
  ASSERT_LE(format.layout().row_bytes, memory.size());
  EXPECT_NO_THROW(format.layout().check());
  const Row row = some_row();
  format.write(memory.data(), row, 9);
  EXPECT_EQ(format.revision(memory.data()), 9U);
  ASSERT_TRUE(format.read(memory.data(), read));
  EXPECT_EQ(read.suspects, row.suspects);
  EXPECT_EQ(read.leaving, row.leaving);
  EXPECT_EQ(read.received, row.received);
  EXPECT_EQ(read.promised, row.promised);
  EXPECT_EQ(read.proposal, row.proposal);
  EXPECT_EQ(read.accepted, row.accepted);
  EXPECT_EQ(read.ended, row.ended);
}

TEST_F(RowFormatTest, MatchesTheExampleOfItsPage) {  // docs/formats/group-row.md
  const RowFormat three(3, 3, "text");
  ASSERT_EQ(three.layout().row_bytes, 120U);
  three.write(memory.data(),
              {.suspects = MemberSet(0b001),
               .received = {12, 19, 30},
               .promised = 2,
               .proposal = {.survivors = MemberSet(0b110), .trim = {10, 19, 30}},
               .accepted = 2},
              3);
  std::array<std::uint64_t, 15> words{};
  std::memcpy(words.data(), memory.data(), sizeof words);
  EXPECT_EQ(words,
            (std::array<std::uint64_t, 15>{3, 1, 0, 2, 2, 0, 6, 0, 12, 19, 30, 10, 19, 30, 3}));
}

TEST_F(RowFormatTest, ReadsInitialMemoryAsARowThatSaysNothing) {
  ASSERT_TRUE(format.read(memory.data(), read));
  EXPECT_EQ(read.promised, 0U);
  EXPECT_TRUE(read.suspects.empty());
  EXPECT_EQ(read.received, (std::vector<std::uint64_t>{0, 0}));
}

TEST_F(RowFormatTest, DoesNotReadARowThatIsBeingChanged) {
  format.write(memory.data(), some_row(), 1);
  spoil("begun", 2);
  read.promised = 99;
  EXPECT_FALSE(format.read(memory.data(), read));
  EXPECT_EQ(read.promised, 99U);
}

TEST_F(RowFormatTest, CutsWhatDoesNotFitThisView) {
  format.write(memory.data(), some_row(), 1);
  for (const char* const column : {"suspects", "promised", "accepted", "survivors"})
    spoil(column, UINT64_MAX);
  ASSERT_TRUE(format.read(memory.data(), read));
  EXPECT_EQ(read.suspects, MemberSet::first(kMembers));
  EXPECT_EQ(read.proposal.survivors, MemberSet::first(kMembers));
  EXPECT_EQ(read.promised, kMembers);
  EXPECT_EQ(read.accepted, kMembers);
}

TEST_F(RowFormatTest, DoesWithoutSenders) {
  const RowFormat none(kMembers, 0, "text");
  EXPECT_NO_THROW(none.layout().check());
  Row row;
  row.promised = 1;
  none.write(memory.data(), row, 1);
  ASSERT_TRUE(none.read(memory.data(), read));
  EXPECT_EQ(read.promised, 1U);
  EXPECT_TRUE(read.received.empty());
}

}  // namespace
}  // namespace dunlin::group

#include "group/row_format.hpp"

#include <array>
#include <cstring>
#include <vector>

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

TEST_F(RowFormatTest, HasAsManyWordsForASetAsItsViewNeeds) {
  for (const auto& [members, set_words] :
       {std::pair{1U, 1U}, {64U, 1U}, {65U, 2U}, {200U, 4U}, {kMaxViewMembers, 4U}}) {
    const RowFormat wide(members, 0, "text");
    EXPECT_NO_THROW(wide.layout().check());
    EXPECT_EQ(wide.layout().row_bytes, (7 + 2 * set_words) * kWordBytes) << members;
    Row row = some_row();
    row.received = row.proposal.trim = {};
    row.promised = row.accepted = members;
    row.suspects = MemberSet::only(members - 1);
    row.proposal.survivors = MemberSet::first(members);
    wide.write(memory.data(), row, 1);
    ASSERT_TRUE(wide.read(memory.data(), read));
    EXPECT_EQ(read.suspects, row.suspects) << members;
    EXPECT_EQ(read.proposal, row.proposal) << members;
    EXPECT_EQ(read.promised, members);
  }
}

TEST_F(RowFormatTest, CutsRanksThatItsViewDoesNotHaveInEveryWord) {
  const RowFormat wide(200, 0, "text");
  std::array<std::uint64_t, 14> words{};
  words.fill(UINT64_MAX);
  std::memcpy(memory.data(), words.data(), sizeof words);
  wide.write(memory.data(), {}, 1);
  for (const Column& each : wide.layout().columns)
    if (each.count > 1) std::memset(memory.data() + each.offset, 0xff, each.bytes);
  ASSERT_TRUE(wide.read(memory.data(), read));
  EXPECT_EQ(read.suspects, MemberSet::first(200));
  EXPECT_EQ(read.proposal.survivors, MemberSet::first(200));
}

/// GRP-C9: a row is published in ascending order, so a peer may see any number of its first words
/// new and all others old. (A later revision may have begun, too.)
TEST_F(RowFormatTest, NeverReadsASetOfWhichSomeWordsAreOldAndSomeAreNew) {
  const RowFormat wide(200, kCounts, "text");
  const auto row_of = [](const MemberSet& set, std::uint64_t count) {
    return Row{.suspects = MemberSet::first(200) - set,
               .received = {count, count},
               .promised = 1,
               .proposal = {.survivors = set, .plan = count, .trim = {count, count}},
               .accepted = 1};
  };
  MemberSet odd;
  for (Rank rank = 1; rank < 200; rank += 2) odd.add(rank);
  const Row before = row_of(odd, 1);
  const Row after = row_of(MemberSet::first(200) - odd, 2);  // differs in every word
  const std::size_t words = wide.layout().row_bytes / kWordBytes;
  std::vector<std::uint64_t> old_words(words), new_words(words);
  wide.write(reinterpret_cast<std::byte*>(old_words.data()), before, 1);
  wide.write(reinterpret_cast<std::byte*>(new_words.data()), after, 2);
  for (std::size_t placed = 0; placed <= words; ++placed) {
    std::vector<std::uint64_t> seen = old_words;
    std::copy_n(new_words.begin(), placed, seen.begin());
    read = {};
    const bool whole = wide.read(reinterpret_cast<const std::byte*>(seen.data()), read);
    ASSERT_EQ(whole, placed == 0 || placed == words) << placed << " words are new";
    if (!whole) continue;
    EXPECT_EQ(read.suspects, (placed == 0 ? before : after).suspects);
    EXPECT_EQ(read.proposal, (placed == 0 ? before : after).proposal);
  }
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

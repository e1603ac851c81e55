#include "log/log.hpp"

#include <array>

#include <gtest/gtest.h>

#include "log/checksum.hpp"
#include "log/group_commit.hpp"
#include "log/scribe.hpp"
#include "support/errors.hpp"

namespace dunlin::log {
namespace {

TEST(Checksum, IsThatOfXz) {
  EXPECT_EQ(checksum("123456789"), 0x995D'C9BB'DF19'39FA);
  EXPECT_EQ(checksum(bytes_of("456789abcdefgh"), checksum("123")), checksum("123456789abcdefgh"));
}

/// The example of docs/formats/log.md.
TEST(Log, LiesInItsFileAsThePageSays) {
  SimulatedDisk disk(1);
  Log log(disk.open("logs"), {.name = "rack7/orders"});
  Batch batch;
  batch.append(2, {}, bytes_of("hello"));
  log.commit(batch);
  const Bytes file = disk.content("logs", "0000000000000001.log");
  const std::array<unsigned char, 48> expected = {
      0x05, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,  //
      0x00, 0x00, 0x00, 0x00, 0xc9, 0x24, 0x8a, 0x28, 0xf5, 0xc9, 0x4a, 0x82,  //
      0x08, 0xb9, 0xff, 0xb1, 0xb2, 0x89, 0x99, 0x63, 0x00, 0x00, 0x00, 0x00,  //
      0x61, 0x1d, 0x7b, 0x76, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x00, 0x00, 0x00};
  ASSERT_EQ(file.size(), SegmentHeader::kBytes + expected.size());
  EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(expected)),
                                 std::span(file).subspan(SegmentHeader::kBytes)));
}

TEST(Log, GivesBackWhatWasCommitted) {
  SimulatedDisk disk(1);
  Scribe scribe(disk, 1, 1'000);
  scribe.open();
  EXPECT_EQ(scribe.log().next(), 1);
  for (int i = 0; i < 40; ++i) scribe.commit(1 + static_cast<std::uint32_t>(scribe.draw(5)), 300);
  ASSERT_NO_FATAL_FAILURE(scribe.check());
  EXPECT_GT(disk.names("logs").size(), 10);
  const std::uint64_t next = scribe.log().next();
  scribe.open();
  EXPECT_EQ(scribe.log().next(), next);
  EXPECT_TRUE(scribe.log().notices().empty());
  ASSERT_NO_FATAL_FAILURE(scribe.check());
}

TEST(Log, HoldsRecordsLongerThanItsSegments) {
  SimulatedDisk disk(1);
  Scribe scribe(disk, 3);
  scribe.open();
  for (const std::size_t bytes : std::initializer_list<std::size_t>{10, 5'000, 3'000'000, 10, 0})
    scribe.commit(2, bytes);
  scribe.open();
  ASSERT_NO_FATAL_FAILURE(scribe.check());
}

TEST(Log, SyncsOnceACommit) {
  SimulatedDisk disk(1);
  Scribe scribe(disk, 1, 1'000'000);
  scribe.open();
  const std::uint64_t before = disk.operations();
  scribe.commit(200);
  EXPECT_EQ(disk.operations() - before, 3) << "a write, a sync, and the mark";
}

/// So members can compare their logs by one number.
/// By LOG-D7 logs with equal chains have equal records.
TEST(Log, HasTheSameChainAsAnotherWithTheSameRecords) {
  SimulatedDisk disk(1);
  Log one(disk.open("one"), {.name = "group/test", .segment_bytes = 300});
  Log other(disk.open("other"), {.name = "group/test"});
  Batch together;
  for (int i = 0; i < 20; ++i) {
    Batch alone;
    const std::string text = "message " + std::to_string(i);
    for (Batch* batch : {&alone, &together}) batch->append(1, bytes_of("a"), bytes_of(text));
    one.commit(alone);
  }
  other.commit(together);
  EXPECT_EQ(one.chain(), other.chain());
  EXPECT_EQ(one.chain_before(8), other.chain_before(8));
  EXPECT_NE(one.chain_before(8), other.chain_before(9));
  EXPECT_EQ(one.chain_before(1), checksum("group/test"));
  EXPECT_THROW((void)one.chain_before(22), Error);
  EXPECT_THROW((void)one.chain_before(0), Error);
}

TEST(Log, IsReadFromAnyRecordOn) {
  SimulatedDisk disk(1);
  Scribe scribe(disk, 5);
  scribe.open();
  for (int i = 0; i < 10; ++i) scribe.commit(3);
  for (std::uint64_t from = 1; from <= 31; ++from) {
    LogReader reader(scribe.log(), from);
    for (std::uint64_t number = from; number <= 30; ++number) {
      const std::optional<Record> record = reader.next();
      ASSERT_TRUE(record);
      EXPECT_EQ(record->number, number);
      EXPECT_TRUE(std::ranges::equal(record->payload, scribe.written()[number - 1]));
    }
    EXPECT_FALSE(reader.next());
  }
}

TEST(Log, IsCutOffAndGoesOnDifferently) {
  for (std::uint64_t from = 1; from <= 31; ++from) {
    SimulatedDisk disk(from);
    Scribe scribe(disk, 5);
    scribe.open();
    for (int i = 0; i < 10; ++i) scribe.commit(3);
    scribe.truncate_from(from);
    ASSERT_NO_FATAL_FAILURE(scribe.check());
    EXPECT_EQ(scribe.log().next(), from);
    scribe.commit(2);
    scribe.open();
    ASSERT_NO_FATAL_FAILURE(scribe.check());
    EXPECT_EQ(scribe.log().next(), from + 2);
  }
}

TEST(Log, WritesNothingMoreOnceItCouldNotBeCutOff) {
  SimulatedDisk disk(1);
  Scribe scribe(disk, 5);
  scribe.open();
  scribe.commit(3);
  disk.fail_next_sync();
  const std::string why = test::what_is_thrown_by([&] { scribe.log().truncate_from(2); });
  EXPECT_TRUE(test::contains(why, "log 'group/test': records 2 to 3 could not be cut off"));
  EXPECT_TRUE(test::contains(why, "'logs/mark'"));
  EXPECT_EQ(test::what_is_thrown_by([&] { scribe.commit(1); }), why);
  EXPECT_EQ(test::what_is_thrown_by([&] { scribe.log().truncate_from(2); }), why);
  disk.crash();
  scribe.open();
  EXPECT_EQ(scribe.log().next(), 4);
}

TEST(Log, ForgetsWholeSegmentsThatAreNotNeeded) {
  SimulatedDisk disk(1);
  Scribe scribe(disk, 5);
  scribe.open();
  for (int i = 0; i < 10; ++i) scribe.commit(3);
  const std::size_t before = disk.names("logs").size();
  scribe.trim_before(17);
  EXPECT_LT(disk.names("logs").size(), before);
  EXPECT_LE(scribe.log().first(), 17);
  EXPECT_GT(scribe.log().first(), 10);
  scribe.open();
  ASSERT_NO_FATAL_FAILURE(scribe.check());
  EXPECT_THROW(LogReader(scribe.log(), 3), Error);
  EXPECT_THROW(scribe.log().truncate_from(3), Error);
  scribe.trim_before(1'000);
  EXPECT_EQ(scribe.log().next(), 31);
  scribe.open();
  ASSERT_NO_FATAL_FAILURE(scribe.check());
}

/// What has failed may look done, and not be.
TEST(Log, AcknowledgesNothingAfterItCouldNotBeCutOff) {
  for (const bool trims : {false, true}) {
    SimulatedDisk disk(1);
    Scribe scribe(disk, 5);
    scribe.open();
    for (int i = 0; i < 10; ++i) scribe.commit(3);
    disk.fail_next_sync();
    EXPECT_THROW(trims ? scribe.trim_before(17) : scribe.log().truncate_from(3), Error);
    Batch batch;
    batch.append(1, {}, bytes_of("x"));
    EXPECT_NE(error_of([&] { scribe.log().commit(batch); }).find("nothing is written any more"),
              std::string::npos);
    EXPECT_EQ(scribe.log().next(), 31U);
  }
}

TEST(Log, IsOpenOnce) {
  SimulatedDisk disk(1);
  const Log log(disk.open("logs"), {.name = "group/test"});
  EXPECT_NE(error_of([&] { (void)disk.open("logs"); }).find("in use"), std::string::npos);
}

TEST(Log, RefusesNamesThatItsHeaderHasNoRoomFor) {
  SimulatedDisk disk(1);
  EXPECT_THROW(Log(disk.open("a"), {.name = ""}), Error);
  EXPECT_THROW(Log(disk.open("b"), {.name = std::string(kMaxNameBytes + 1, 'x')}), Error);
  EXPECT_NO_THROW(Log(disk.open("c"), {.name = std::string(kMaxNameBytes, 'x')}));
  EXPECT_NO_THROW(Log(disk.open("c"), {.name = std::string(kMaxNameBytes, 'x')}));
}

// --- group commit --------------------------------------------------------------------------------

TEST(GroupCommit, CommitsTogetherWhatCameMeanwhile) {
  SimulatedDisk disk(1);
  Log log(disk.open("logs"), {.name = "group/test"});
  GroupCommit commit(disk, log);
  commit.append(0, {}, {});
  EXPECT_FALSE(commit.poll()) << "started";
  for (int i = 0; i < 10; ++i) commit.append(0, {}, {});
  EXPECT_EQ(commit.next(), 12);
  EXPECT_EQ(commit.durable(), 1);
  EXPECT_TRUE(commit.poll());
  EXPECT_EQ(commit.durable(), 2);
  EXPECT_TRUE(commit.poll());
  EXPECT_EQ(commit.durable(), 12);
  EXPECT_FALSE(commit.poll());
  EXPECT_EQ(commit.commits(), 2);
  EXPECT_EQ(log.next(), 12);
}

TEST(GroupCommit, AcknowledgesNothingAfterAFailure) {
  SimulatedDisk disk(1);
  Log log(disk.open("logs"), {.name = "group/test"});
  GroupCommit commit(disk, log);
  commit.append(0, {}, bytes_of("one"));
  commit.finish();
  EXPECT_EQ(commit.durable(), 2);
  disk.fail_next_sync();
  commit.append(0, {}, bytes_of("two"));
  commit.finish();
  commit.append(0, {}, bytes_of("three"));
  commit.finish();
  EXPECT_EQ(commit.durable(), 2);
  EXPECT_NE(commit.failure().find("record"), std::string::npos);
}

}  // namespace
}  // namespace dunlin::log

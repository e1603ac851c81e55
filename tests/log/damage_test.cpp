#include <gtest/gtest.h>

#include "log/checksum.hpp"
#include "log/scribe.hpp"
#include "support/rounds.hpp"

/// Logs that somebody has spoilt: every bit, every length, every file.
namespace dunlin::log {
namespace {

constexpr std::uint64_t kRecords = 9;
constexpr std::uint64_t kSegmentBytes = 400;
/// All bits in release. A sanitizer sees a bit or two of each byte, and all places in a byte.
constexpr std::size_t kBitStep = test::kSanitized ? 7 : 1;

/// Three segments of commits of one to three records.
class Damage : public testing::Test {
 protected:
  Damage() {
    Scribe scribe(disk, 7, kSegmentBytes);
    scribe.open();
    for (const std::uint32_t records : {3U, 2U, 1U, 1U, 2U}) scribe.commit(records, 60);
    whole = scribe.written();
    scribe.close();
    names = disk.names("logs");
    EXPECT_EQ(names.size(), 4) << "three segments and the mark";
  }

  /// As after a crash, which forgets what was said of the syncs.
  void forget_the_mark() {
    Bytes bytes = disk.content("logs", "mark");
    const auto mark =
        Mark::read(std::span<const std::byte, Mark::kBytes>(bytes.data(), Mark::kBytes),
                   checksum("group/test"));
    ASSERT_TRUE(mark);
    for (std::uint64_t i = 0; i < Mark::kPlaces; ++i) {
      const std::span<std::byte, Mark::kBytes> to(bytes.data() + i * Mark::kStride, Mark::kBytes);
      Mark{.revision = i + 1, .first = 1, .synced = 1, .salt = mark->salt}.write(
          to, checksum("group/test"));
    }
    disk.replace("logs", "mark", bytes);
  }

  struct Found {
    std::string error;
    std::vector<std::string> notices;
    std::vector<Bytes> records;
  };
  Found open() {
    Found found;
    found.error = error_of([&] {
      Log log(disk.open("logs"), {.name = "group/test", .segment_bytes = kSegmentBytes});
      found.notices = log.notices();
      found.records = read_all(log);
    });
    return found;
  }
  /// Opens it with the file like this, and puts everything back.
  Found open_with(const std::string& name, const Bytes& bytes) {
    std::vector<std::pair<std::string, Bytes>> before;
    for (const std::string& each : names) before.emplace_back(each, disk.content("logs", each));
    disk.replace("logs", name, bytes);
    Found found = open();
    if (!found.error.empty()) {
      EXPECT_EQ(disk.content("logs", name), bytes) << "it is left for whoever repairs it";
    }
    for (const auto& [each, content] : before) disk.replace("logs", each, content);
    return found;
  }
  void expect_all_or_why(const Found& found, const std::string& name) {
    if (found.error.empty()) {
      ASSERT_EQ(found.records, whole);
    } else {
      ASSERT_NE(found.error.find("'logs/" + name + "'"), std::string::npos) << found.error;
    }
  }
  /// At least the records before the last commit, all as they were.
  void expect_prefix(const Found& found) {
    ASSERT_GE(found.records.size(), whole.size() - 2);
    for (std::size_t i = 0; i < found.records.size(); ++i) {
      ASSERT_EQ(found.records[i], whole[i]);
    }
    ASSERT_TRUE(found.records.size() == whole.size() || !found.notices.empty());
  }

  SimulatedDisk disk{1};
  std::vector<Bytes> whole;
  std::vector<std::string> names;
};

TEST_F(Damage, NothingIsWrongAtFirst) {
  const Found found = open();
  EXPECT_EQ(found.error, "");
  EXPECT_TRUE(found.notices.empty());
  EXPECT_EQ(found.records, whole);
  EXPECT_EQ(whole.size(), kRecords);
}

/// LOG-D3 promises what this test checks.
TEST_F(Damage, OfAnyBitIsFoundWithFileAndOffset) {
  for (const std::string& name : names) {
    const Bytes before = disk.content("logs", name);
    std::uint64_t harmless = 0;
    std::uint64_t between = 0;  // the copies of the mark
    for (std::size_t bit = 0; bit < before.size() * 8; bit += kBitStep) {
      SCOPED_TRACE(name + ", bit " + std::to_string(bit));
      Bytes bytes = before;
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      const Found found = open_with(name, bytes);
      ASSERT_NO_FATAL_FAILURE(expect_all_or_why(found, name));
      harmless += found.error.empty() && found.notices.empty() ? 1 : 0;
      between += name == "mark" && bit >= Mark::kBytes * 8 && bit < Mark::kStride * 8 ? 1 : 0;
      if (name != "mark") {
        ASSERT_NE(found.error, "");
      }
    }
    EXPECT_EQ(harmless, between);
  }
}

TEST_F(Damage, OfAnyBitCostsAtMostTheLastCommitWhenTheMarkIsOld) {
  forget_the_mark();
  for (const std::string& name : names) {
    if (name == "mark") continue;
    const Bytes before = disk.content("logs", name);
    for (std::size_t bit = 0; bit < before.size() * 8; bit += kBitStep) {
      SCOPED_TRACE(name + ", bit " + std::to_string(bit));
      Bytes bytes = before;
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      const Found found = open_with(name, bytes);
      if (found.error.empty()) {
        ASSERT_EQ(name, names[2]) << "only what comes last can be torn";
        ASSERT_NO_FATAL_FAILURE(expect_prefix(found));
      } else {
        ASSERT_NO_FATAL_FAILURE(expect_all_or_why(found, name));
      }
    }
  }
}

TEST_F(Damage, OfAnyLengthIsFound) {
  for (const std::string& name : names) {
    const Bytes before = disk.content("logs", name);
    for (std::size_t bytes = 0; bytes < before.size(); ++bytes) {
      SCOPED_TRACE(name + ", " + std::to_string(bytes) + " bytes");
      const Found found =
          open_with(name, {before.begin(), before.begin() + static_cast<std::ptrdiff_t>(bytes)});
      if (name == "mark" && bytes >= Mark::kBytes) {
        ASSERT_NO_FATAL_FAILURE(expect_all_or_why(found, name));
        ASSERT_FALSE(found.notices.empty());
      } else {
        ASSERT_NE(found.error.find("'logs/" + name + "'"), std::string::npos) << found.error;
        ASSERT_NE(found.error.find("offset"), std::string::npos) << found.error;
      }
    }
  }
}

TEST_F(Damage, OfAMissingFileIsSaidWithItsName) {
  for (const std::string& name : names) {
    const Bytes before = disk.content("logs", name);
    disk.remove("logs", name);
    const Found found = open();
    const bool last = name == names[2];
    EXPECT_NE(found.error.find(last ? names[1] : name), std::string::npos) << found.error;
    EXPECT_NE(found.error.find(last ? "had been synced" : "missing"), std::string::npos)
        << found.error;
    disk.replace("logs", name, before);
  }
  EXPECT_EQ(open().error, "");
}

TEST_F(Damage, OfFilesThatAreNotOursIsSaidWhoseTheyAre) {
  SimulatedDisk other(3);
  Scribe scribe(other, 8, kSegmentBytes);
  scribe.open();
  for (int i = 0; i < 6; ++i) scribe.commit(2, 60);
  scribe.close();
  const std::string& second = names[1];
  Log foreign(disk.open("others"), {.name = "group/other"});
  const std::string first = names[0];
  EXPECT_NE(open_with(first, disk.content("others", first))
                .error.find("belongs to the log 'group/other'"),
            std::string::npos);
  const Bytes of_another_history = other.content("logs", other.names("logs")[0]);
  EXPECT_NE(
      open_with(first, of_another_history).error.find("does not continue the segment before it"),
      std::string::npos);
  EXPECT_NE(open_with(second, disk.content("logs", first)).error.find("have been renamed"),
            std::string::npos);
}

/// Nobody must empty it because it is not ours.
TEST_F(Damage, IsNotWhatSomebodyElsesLogHas) {
  try {
    const Log log(disk.open("logs"), {.name = "group/other"});
    ADD_FAILURE() << "it was opened";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("rm -r"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what())
                  .find(names[0] +
                        "' belongs to the log 'group/test': give each log a directory of its own"),
              std::string::npos)
        << error.what();
  }
}

/// A directory may have been given to us by mistake.
TEST_F(Damage, IsNotDoneToFilesThatAreNoLogs) {
  for (const char* name : {"letter.new", "0000000000000000.log", ".new", "mark.new.new"})
    disk.replace("logs", name, Bytes(5));
  EXPECT_EQ(open().error, "");
  for (const char* name : {"letter.new", ".new", "mark.new.new"})
    EXPECT_EQ(disk.content("logs", name), Bytes(5)) << name;
  for (const char* name : {"letter.new", "0000000000000000.log"})
    disk.replace("home", name, Bytes(5));
  { const Log log(disk.open("home"), {.name = "group/test"}); }
  EXPECT_EQ(disk.content("home", "letter.new"), Bytes(5));
  EXPECT_EQ(disk.content("home", "0000000000000000.log"), Bytes(5));
}

TEST_F(Damage, ThatIsFoundLeavesEverythingAsItIs) {
  const std::string begun = segment_name(10) + ".new";
  disk.replace("logs", begun, Bytes(5));
  Bytes spoilt = disk.content("logs", names.front());
  spoilt[200] ^= std::byte{1};
  EXPECT_NE(open_with(names.front(), spoilt).error, "");
  EXPECT_EQ(disk.content("logs", begun), Bytes(5));
  EXPECT_EQ(open().error, "");
  EXPECT_EQ(std::ranges::count(disk.names("logs"), begun), 0) << "a crash had left it";
}

TEST_F(Damage, IsNotWhatANewerVersionWrites) {
  Bytes bytes = disk.content("logs", names[0]);
  bytes[8] = std::byte{2};
  const std::string error = open_with(names[0], bytes).error;
  EXPECT_NE(error.find("'logs/" + names[0] + "' is of version 2; this program reads version 1"),
            std::string::npos)
      << error;
}

/// A record of number `number` that says that it was committed alone, as it would lie in a log with
/// this seed of checks.
Bytes forged_record(std::uint64_t number, std::uint64_t seed) {
  const Bytes payload(16, std::byte{7});
  RecordHeader header{.bytes = 16, .kind = 1, .number = number};
  header.chain = header.chain_over(payload);
  header.check = header.check_over(seed);
  Bytes record(RecordHeader::kBytes);
  header.write(record.data());
  record.insert(record.end(), payload.begin(), payload.end());
  return record;
}

/// A message may hold records of a log of this very name, and of higher numbers than its own.
struct RecordsWithinRecords : testing::Test {
  /// A log whose first record holds such records, and was not synced.
  void write(bool knows_salt) {
    Log log(disk.open("logs"), {.name = "group/test"});
    mark = disk.content("logs", "mark");
    const std::uint64_t name_sum = checksum("group/test");
    const auto read =
        Mark::read(std::span<const std::byte, Mark::kBytes>(mark.data(), Mark::kBytes), name_sum);
    ASSERT_TRUE(read && read->salt != 0);
    Bytes payload;
    for (std::uint64_t number = 2; number < 12; ++number) {
      const Bytes record = forged_record(number, knows_salt ? name_sum ^ read->salt : name_sum);
      payload.insert(payload.end(), record.begin(), record.end());
    }
    Batch batch;
    batch.append(1, {}, payload);
    log.commit(batch);
    segment = disk.content("logs", segment_name(1));
  }
  void expect_torn(const Bytes& content) {
    disk.replace("logs", "mark", mark);
    disk.replace("logs", segment_name(1), content);
    const Log log(disk.open("logs"), {.name = "group/test"});
    EXPECT_EQ(log.next(), 1U);
    EXPECT_EQ(log.notices().size(), 1U);
  }
  SimulatedDisk disk{4};
  Bytes mark;     // before the record was written
  Bytes segment;  // with it
};

/// A full disk cuts a record off after some of its bytes. So its header is whole, and says how
/// long the record is.
TEST_F(RecordsWithinRecords, DoNotMakeARecordThatAFullDiskCutOffLookSynced) {
  ASSERT_NO_FATAL_FAILURE(write(true));
  for (std::size_t bytes = SegmentHeader::kBytes + 1; bytes < segment.size(); bytes += 8)
    ASSERT_NO_FATAL_FAILURE(
        expect_torn({segment.begin(), segment.begin() + static_cast<std::ptrdiff_t>(bytes)}))
        << bytes;
}

/// A crash of the machine may lose any sector of a record, and so its header. Then the records in
/// its payload are looked at, and lack the log's salt.
TEST_F(RecordsWithinRecords, DoNotMakeARecordLookSyncedThatLostItsHeader) {
  ASSERT_NO_FATAL_FAILURE(write(false));
  Bytes torn = segment;
  for (std::size_t bit = 0; bit < RecordHeader::kBytes * 8; ++bit) {
    torn = segment;
    torn[SegmentHeader::kBytes + bit / 8] ^= std::byte{1} << (bit % 8);
    ASSERT_NO_FATAL_FAILURE(expect_torn(torn)) << bit;
  }
  std::fill_n(torn.begin() + SegmentHeader::kBytes, RecordHeader::kBytes, std::byte{0});
  expect_torn(torn);
}

}  // namespace
}  // namespace dunlin::log

#include <gtest/gtest.h>

#include "log/scribe.hpp"
#include "support/rounds.hpp"

/// A machine that crashes at every operation, and keeps any part of what was not synced.
namespace dunlin::log {
namespace {

constexpr std::size_t kSectorBytes = 64;

void work(Scribe& scribe) {
  for (int i = 0; i < 6; ++i) scribe.commit(1 + static_cast<std::uint32_t>(scribe.draw(4)));
  scribe.truncate_from(scribe.log().next() - scribe.draw(6));
  scribe.commit(2);
  scribe.trim_before(scribe.log().first() + scribe.draw(8));
  scribe.commit(3);
  scribe.truncate_from(scribe.log().next() - 1);
  scribe.commit(1, 1'000);
}

/// Crashes again while it is opened, now and then, as long as it takes.
void reopen(SimulatedDisk& disk, Scribe& scribe) {
  scribe.close();
  disk.crash();
  for (int crashes = static_cast<int>(scribe.draw(3)); crashes > 0; --crashes) {
    disk.crash_after(1 + scribe.draw(8));
    if (!error_of([&] { scribe.open(); }).empty()) {
      ASSERT_TRUE(disk.stopped()) << error_of([&] { scribe.open(); });
    }
    scribe.close();
    disk.crash();
  }
  ASSERT_NO_THROW(scribe.open());
}

void crash_at(std::uint64_t seed, std::uint64_t operation) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", operation " + std::to_string(operation));
  SimulatedDisk disk(seed * 1'000 + operation, kSectorBytes);
  Scribe scribe(disk, seed);
  disk.crash_after(operation);
  const std::string error = error_of([&] {
    scribe.open();
    work(scribe);
  });
  ASSERT_NE(error, "");
  ASSERT_TRUE(disk.stopped()) << error;
  for (int again = 0; again < 2; ++again) {
    ASSERT_NO_FATAL_FAILURE(reopen(disk, scribe));
    ASSERT_NO_FATAL_FAILURE(scribe.check());
    ASSERT_NO_THROW(work(scribe));
    ASSERT_NO_FATAL_FAILURE(scribe.check());
  }
}

std::uint64_t operations(std::uint64_t seed) {
  SimulatedDisk disk(seed, kSectorBytes);
  Scribe scribe(disk, seed);
  scribe.open();
  work(scribe);
  scribe.check();
  return disk.operations();
}

TEST(Crashes, LoseNothingThatWasAcknowledgedAtAnyOperation) {
  for (std::uint64_t seed = 1; seed <= test::rounds(40); ++seed) {
    const std::uint64_t all = operations(seed);
    ASSERT_GT(all, 50);
    for (std::uint64_t operation = 1; operation <= all; ++operation) {
      ASSERT_NO_FATAL_FAILURE(crash_at(seed, operation));
    }
  }
}

/// By LOG-D4 a torn tail is cut off and told.
TEST(Crashes, TearTailsOfWhichItIsSaidWhereTheyAre) {
  std::size_t torn = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SimulatedDisk disk(seed, kSectorBytes);
    Scribe scribe(disk, seed, 100'000);
    scribe.open();
    scribe.commit(3);
    disk.crash_after(1);  // while the next commit is written
    EXPECT_THROW(scribe.commit(8), Error);
    scribe.close();
    disk.crash();
    scribe.open();
    for (const std::string& notice : scribe.log().notices()) {
      EXPECT_NE(notice.find("'logs/0000000000000001.log' at offset "), std::string::npos) << notice;
      EXPECT_NE(notice.find(" bytes are cut off"), std::string::npos) << notice;
      ++torn;
    }
    ASSERT_NO_FATAL_FAILURE(scribe.check());
    scribe.open();
    EXPECT_TRUE(scribe.log().notices().empty()) << "once is enough";
  }
  EXPECT_GT(torn, 30);
}

/// After a failed sync, memory has what the disk has not, and later syncs say nothing.
TEST(Crashes, DoNotTakeWhatAFailedSyncLeftInMemory) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SimulatedDisk disk(seed, kSectorBytes);
    Scribe scribe(disk, seed, 100'000);
    scribe.open();
    scribe.commit(3);
    disk.fail_next_sync();
    const std::string error = error_of([&] { scribe.commit(2); });
    EXPECT_NE(error.find("records 4 to 5 could not be made durable"), std::string::npos) << error;
    EXPECT_NE(error.find("fdatasync"), std::string::npos) << error;
    EXPECT_EQ(error_of([&] { scribe.commit(2); }), error) << "it is not tried again";
    scribe.open();  // the same machine: its memory is as it was
    const std::uint64_t next = scribe.log().next();
    EXPECT_EQ(next, 6);
    scribe.close();
    disk.crash();
    scribe.open();
    EXPECT_EQ(scribe.log().next(), next) << "it was counted, and is lost";
  }
}

TEST(Crashes, OfAFullDiskLeaveWhatWasAcknowledged) {
  for (std::uint64_t room = 8'500; room < 10'500; room += 17) {
    SimulatedDisk disk(room, kSectorBytes);
    Scribe scribe(disk, room);
    disk.capacity(room);
    const std::string error = error_of([&] {
      scribe.open();
      for (int i = 0; i < 50; ++i) scribe.commit(2);
    });
    EXPECT_NE(error.find(".log"), std::string::npos) << error;
    EXPECT_NE(error.find(" at offset "), std::string::npos) << error;
    EXPECT_NE(error.find("No space left on device"), std::string::npos) << error;
    scribe.close();
    disk.capacity(UINT64_MAX);
    if (room % 2 == 0) disk.crash();
    ASSERT_NO_THROW(scribe.open());
    ASSERT_NO_FATAL_FAILURE(scribe.check());
    ASSERT_NO_THROW(scribe.commit(4));
  }
}

}  // namespace
}  // namespace dunlin::log

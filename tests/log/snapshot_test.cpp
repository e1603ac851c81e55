#include <array>

#include <gtest/gtest.h>

#include "log/checksum.hpp"
#include "log/scribe.hpp"
#include "support/rounds.hpp"

/// Snapshots, and logs that are replaced by a copy of another one: at every crash, and damaged.
namespace dunlin::log {
namespace {

constexpr std::size_t kSectorBytes = 64;

std::unique_ptr<Log> open(SimulatedDisk& disk) {
  return std::make_unique<Log>(disk.open("logs"),
                               LogOptions{.name = "group/test", .segment_bytes = 400});
}
void commit(Log& log, std::uint64_t records) {
  for (; records > 0; --records) {
    Batch batch;
    const std::uint64_t number = log.next();
    batch.append(8, {}, std::as_bytes(std::span(&number, 1)));
    log.commit(batch);
  }
}
/// Whether each record holds its number.
void expect_its_own_numbers(Log& log) {
  LogReader reader(log, log.first());
  while (const std::optional<Record> record = reader.next()) {
    std::uint64_t number = 0;
    ASSERT_EQ(record->payload.size(), sizeof number);
    std::memcpy(&number, record->payload.data(), sizeof number);
    ASSERT_EQ(number, record->number);
  }
}
Snapshot snapshot_of(Log& log, std::uint64_t number) {
  return {.number = number,
          .from = number - 1,
          .chain = log.chain_before(number - 1),
          .payload = {std::byte{7}}};
}

/// By LOG-S2 only records that a snapshot stands for are trimmed.
TEST(Snapshot, StandsForTheRecordsBeforeIt) {
  SimulatedDisk disk(1);
  auto log = open(disk);
  commit(*log, 40);
  const std::size_t files = disk.names("logs").size();
  log->trim_before(30);
  EXPECT_EQ(disk.names("logs").size(), files) << "nothing stands for them yet";
  log->store(snapshot_of(*log, 20));
  log->trim_before(30);
  EXPECT_GT(log->first(), 1U);
  EXPECT_LE(log->first(), 19U) << "a restart needs what the snapshot does not have";
  EXPECT_THROW(log->truncate_from(19), Error);
  log->truncate_from(20);
  log = nullptr;
  log = open(disk);
  ASSERT_TRUE(log->snapshot().has_value());
  EXPECT_EQ(log->read_snapshot().number, 20U);
  EXPECT_EQ(log->read_snapshot().payload, std::vector{std::byte{7}});
  EXPECT_EQ(log->next(), 20U);
}

/// LOG-D8
TEST(Snapshot, LeavesRecordsBeforeItUnreadAtOpening) {
  SimulatedDisk disk(1);
  auto log = open(disk);
  commit(*log, 40);
  log->store(snapshot_of(*log, 30));
  log = nullptr;
  std::vector<std::byte> bytes = disk.content("logs", segment_name(1));
  bytes[200] ^= std::byte{1};
  disk.replace("logs", segment_name(1), std::move(bytes));
  std::uint64_t read = 0;
  log = std::make_unique<Log>(
      disk.open("logs"),
      LogOptions{.name = "group/test", .on_record = [&](const Record&, std::uint64_t) { ++read; }});
  EXPECT_LT(read, 20U);
  EXPECT_EQ(log->next(), 41U);
  LogReader reader(*log, log->first());
  EXPECT_NE(error_of([&] {
              while (reader.next()) {
              }
            }).find("is damaged"),
            std::string::npos)
      << "a reader checks them";
}

TEST(Snapshot, ThatIsDamagedOrMissingIsFound) {
  SimulatedDisk disk(1);
  auto log = open(disk);
  commit(*log, 40);
  log->store(snapshot_of(*log, 30));
  log->trim_before(30);
  log = nullptr;
  const std::string name = snapshot_name(30);
  const std::vector<std::byte> whole = disk.content("logs", name);
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::vector<std::byte> bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    disk.replace("logs", name, std::move(bytes));
    ASSERT_NE(error_of([&] { open(disk); }).find(name + "' is damaged"), std::string::npos) << bit;
  }
  disk.remove("logs", name);
  EXPECT_NE(error_of([&] { open(disk); }).find("has no snapshot, which stands for the records"),
            std::string::npos);
  disk.replace("logs", name, whole);
  EXPECT_EQ(open(disk)->next(), 41U);
}

/// A log of its own becomes a copy of the other one, from its snapshot on.
void copy(Log& log, Log& other) {
  log.begin_copy(other.snapshot() ? std::optional(other.read_snapshot()) : std::nullopt);
  commit(log, other.next() - log.next());
  log.end_copy();
}

/// A log of 1 to 25 records; that of an even seed has been trimmed.
void write_own(SimulatedDisk& disk, std::uint64_t seed) {
  const auto log = open(disk);
  commit(*log, 1 + seed % 25);
  if (seed % 2 == 0) {
    log->store(snapshot_of(*log, log->next()));
    log->trim_before(log->next());
  }
}

/// All that a log has, and that nothing else is in its directory.
struct Content {
  std::uint64_t first = 0;
  std::uint64_t next = 0;
  std::uint64_t chain = 0;
  std::optional<std::uint64_t> snapshot = {};
  friend bool operator==(const Content&, const Content&) = default;
};
Content content_of(Log& log) {
  return {log.first(), log.next(), log.chain(),
          log.snapshot() ? std::optional(log.read_snapshot().number) : std::nullopt};
}
void expect_no_other_files(SimulatedDisk& disk, const Log& log) {
  EXPECT_EQ(disk.names("logs").size(), 1 + log.segments().size() + (log.snapshot() ? 1 : 0));
}

struct Outcomes {
  std::uint64_t originals = 0;
  std::uint64_t copies = 0;
};

/// Crashes again while it is opened.
void crash_a_copy(std::uint64_t seed, std::uint64_t operation, Log& other, Outcomes& outcomes) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", operation " + std::to_string(operation));
  SimulatedDisk disk(seed * 1'000 + operation, kSectorBytes);
  write_own(disk, seed);
  disk.crash();
  auto log = open(disk);
  const Content own = content_of(*log);
  disk.crash_after(operation);
  const bool crashed = !error_of([&] { copy(*log, other); }).empty();
  log = nullptr;
  disk.crash();
  disk.crash_after(1 + operation % 7);
  static_cast<void>(error_of([&] { open(disk); }));
  disk.crash();
  log = open(disk);
  ASSERT_NO_FATAL_FAILURE(expect_its_own_numbers(*log));
  expect_no_other_files(disk, *log);
  const Content found = content_of(*log);
  const bool copied = found.next == other.next();
  if (copied) {
    ASSERT_EQ(found.chain, other.chain());
    ASSERT_EQ(found.snapshot, content_of(other).snapshot);
  } else {
    ASSERT_EQ(found, own) << "all of it counts until the copy does";
    ASSERT_TRUE(crashed);
  }
  ++(copied ? outcomes.copies : outcomes.originals);
  copy(*log, other);  // into the other set of files, if it has been copied
  log = nullptr;
  disk.crash();
  log = open(disk);
  ASSERT_EQ(log->next(), other.next());
  ASSERT_EQ(log->chain(), other.chain());
  expect_no_other_files(disk, *log);
}

/// LOG-S3
TEST(Snapshot, CountsAsACopyOnceAllOfItIsThereAtAnyCrash) {
  Outcomes outcomes;
  for (const bool with_snapshot : {false, true}) {
    SimulatedDisk others(1);
    const auto other = open(others);
    commit(*other, 30);
    if (with_snapshot) {
      other->store(snapshot_of(*other, 20));
      other->trim_before(20);
    }
    for (std::uint64_t seed = 1; seed <= test::rounds(24); ++seed)
      for (std::uint64_t operation = 1; operation <= (with_snapshot ? 60 : 130); ++operation)
        ASSERT_NO_FATAL_FAILURE(crash_a_copy(seed, operation, *other, outcomes));
  }
  EXPECT_GT(outcomes.originals, 200U);
  EXPECT_GT(outcomes.copies, 100U);
}

TEST(Snapshot, OfAnotherLogIsForgottenWithACopyThatIsDropped) {
  SimulatedDisk others(1);
  const auto other = open(others);
  commit(*other, 30);
  other->store(snapshot_of(*other, 20));
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SimulatedDisk disk(seed);
    write_own(disk, seed);
    auto log = open(disk);
    const Content own = content_of(*log);
    log->begin_copy(other->read_snapshot());
    commit(*log, seed % 8);
    EXPECT_EQ(log->first(), 19U);
    log->drop_copy();
    ASSERT_EQ(content_of(*log), own);
    expect_no_other_files(disk, *log);
    commit(*log, 3);
    log = nullptr;
    disk.crash();
    log = open(disk);
    EXPECT_EQ(log->next(), own.next + 3);
    expect_its_own_numbers(*log);
  }
}

/// Both copies of a mark of version 1 or 2 (docs/formats/log.md), which have no salt.
void make_mark_older(SimulatedDisk& disk, std::uint32_t version, std::uint64_t synced) {
  std::vector<std::byte> mark(Mark::kStride + Mark::kBytes);
  for (const std::uint64_t at : {std::uint64_t{0}, Mark::kStride}) {
    const std::span place = std::span(mark).subspan(at, Mark::kBytes);
    const std::uint64_t revision = 90 + at % 2;
    const std::array<std::uint64_t, 5> one{0x4B52414D4E4E5544, revision, 1, synced, 0};
    const std::array<std::uint64_t, 5> two{Mark::kMagic, 2, revision, 1, synced};
    std::memcpy(place.data(), version == 1 ? one.data() : two.data(), sizeof one);
    const std::uint64_t sum = checksum(place.first(40), checksum(std::string("group/test")));
    std::memcpy(place.data() + 40, &sum, sizeof sum);
  }
  disk.replace("logs", "mark", std::move(mark));
}

TEST(Snapshot, MayBeStoredInALogOfAnOlderVersion) {
  for (const std::uint32_t version : {1U, 2U}) {
    SimulatedDisk disk(1);
    open(disk);
    make_mark_older(disk, version, 1);
    commit(*open(disk), 20);
    make_mark_older(disk, version, 21);
    auto log = open(disk);
    EXPECT_EQ(log->next(), 21U);
    EXPECT_EQ(log->notices(), std::vector<std::string>());
    commit(*log, 5);  // one place is of either version
    log = nullptr;
    log = open(disk);
    log->store(snapshot_of(*log, 20));
    log->trim_before(20);
    log = nullptr;
    log = open(disk);
    EXPECT_EQ(log->next(), 26U);
    EXPECT_GT(log->first(), 1U);
  }
}

TEST(Snapshot, OfALogOfANewerVersionIsRefused) {
  SimulatedDisk disk(1);
  commit(*open(disk), 20);
  std::vector<std::byte> mark = disk.content("logs", "mark");
  mark[8] = mark[Mark::kStride + 8] = std::byte{4};
  disk.replace("logs", "mark", std::move(mark));
  EXPECT_NE(error_of([&] {
              open(disk);
            }).find("'logs/mark' is of version 4; this program reads versions 1 to 3: use a"),
            std::string::npos);
}

}  // namespace
}  // namespace dunlin::log

#include <gtest/gtest.h>

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
void copy(SimulatedDisk& disk, Log& other) {
  const auto log = open(disk);
  log->begin_copy(other.next());
  log->begin_anew(other.snapshot() ? std::optional(other.read_snapshot()) : std::nullopt);
  commit(*log, other.next() - log->next());
  log->end_copy();
}

void crash_a_copy(std::uint64_t seed, std::uint64_t operation, bool with_snapshot, Log& other,
                  std::uint64_t& halves) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", operation " + std::to_string(operation));
  SimulatedDisk disk(seed * 1'000 + operation, kSectorBytes);
  const std::uint64_t own = 1 + seed % 25;
  commit(*open(disk), own);
  if (seed % 2 == 0) {
    const auto log = open(disk);
    log->store(snapshot_of(*log, log->next()));
    log->trim_before(log->next());
  }
  disk.crash();
  disk.crash_after(operation);
  const bool crashed = !error_of([&] { copy(disk, other); }).empty();
  disk.crash();
  auto log = open(disk);
  ASSERT_NO_FATAL_FAILURE(expect_its_own_numbers(*log));
  if (log->half_copied()) {
    ++halves;
  } else if (log->next() == other.next() && log->chain() == other.chain()) {
    ASSERT_EQ(log->snapshot().has_value(), with_snapshot);
  } else {
    ASSERT_TRUE(crashed);
    ASSERT_EQ(log->next(), own + 1) << "it had not begun";
  }
  log = nullptr;
  copy(disk, other);
  log = open(disk);
  ASSERT_FALSE(log->half_copied());
  ASSERT_EQ(log->next(), other.next());
  ASSERT_EQ(log->chain(), other.chain());
}

/// LOG-S3
TEST(Snapshot, LeavesAHalfCopiedLogThatSaysSoAtAnyCrash) {
  std::uint64_t halves = 0;
  for (const bool with_snapshot : {false, true}) {
    SimulatedDisk others(1);
    const auto other = open(others);
    commit(*other, 30);
    if (with_snapshot) other->store(snapshot_of(*other, 20));
    for (std::uint64_t seed = 1; seed <= test::rounds(40); ++seed)
      for (std::uint64_t operation = 1; operation <= 60; ++operation)
        ASSERT_NO_FATAL_FAILURE(crash_a_copy(seed, operation, with_snapshot, *other, halves));
  }
  EXPECT_GT(halves, 500U);
}

}  // namespace
}  // namespace dunlin::log

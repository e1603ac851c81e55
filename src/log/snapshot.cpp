#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <dunlin/error.hpp>

#include "assert.hpp"
#include "log/checksum.hpp"
#include "log/log.hpp"

/// Snapshots: a file is complete, and synced, before it has its name; the one before it goes
/// afterwards, and the records that it stands for may go then.
namespace dunlin::log {
namespace {
constexpr std::string_view kNewSuffix = ".new";
}

/// The latest one. In a log that is half copied, only the one with which the copy begins.
void Log::find_snapshot() {
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : directory_->names())
    if (const std::optional<std::uint64_t> number = number_of_snapshot(name))
      numbers.push_back(*number);
  std::ranges::sort(numbers, std::greater());
  for (const std::uint64_t number : numbers) {
    const std::string name = snapshot_name(number);
    std::optional<Snapshot> found = read_snapshot(name);
    if (!found)
      refuse("'" + directory_->path() + "/" + name + "' is damaged, or another log's snapshot" +
             what_to_do());
    if (mark_.copying > 0 && found->from != mark_.first) continue;
    snapshot_ = SnapshotHeader{.number = found->number,
                               .from = found->from,
                               .chain = found->chain,
                               .bytes = found->payload.size()};
    if (options_.on_snapshot) options_.on_snapshot(*found);
    return;
  }
}

/// The records that are needed beside it are there, and fit it.
void Log::check_snapshot() const {
  if (!snapshot_ && first() > 1 && mark_.copying == 0)
    refuse("'" + directory_->path() + "' has no snapshot, which stands for the records below " +
           std::to_string(first()) + what_to_do());
  if (!snapshot_) return;
  const std::string file = "'" + directory_->path() + "/" + snapshot_name(snapshot_->number) + "'";
  if (snapshot_->number > next_ && mark_.copying == 0)
    refuse(file + " stands for the records below " + std::to_string(snapshot_->number) +
           ", and those from " + std::to_string(next_) + " on are missing" + what_to_do());
  if (snapshot_->from < first())
    refuse("'" + directory_->path() + "/" + segment_name(snapshot_->from) + "' is missing, with " +
           range(snapshot_->from, first()) + what_to_do());
}

std::optional<Snapshot> Log::read_snapshot(const std::string& name) {
  const std::unique_ptr<File> file = directory_->open(name);
  std::array<std::byte, SnapshotHeader::kBytes> bytes{};
  if (file->read(0, bytes) < bytes.size()) return std::nullopt;
  const std::optional<SnapshotHeader> header = SnapshotHeader::read(bytes, name_sum_);
  if (!header || snapshot_name(header->number) != name ||
      file->bytes() != SnapshotHeader::kBytes + header->bytes)
    return std::nullopt;
  Snapshot snapshot{.number = header->number, .from = header->from, .chain = header->chain};
  snapshot.payload.resize(static_cast<std::size_t>(header->bytes));
  if (file->read(SnapshotHeader::kBytes, snapshot.payload) < snapshot.payload.size() ||
      checksum(snapshot.payload) != header->sum)
    return std::nullopt;
  return snapshot;
}

Snapshot Log::read_snapshot() {
  DUNLIN_ASSERT_ALWAYS(snapshot_.has_value(), "there is a snapshot to read");
  const std::string name = snapshot_name(snapshot_->number);
  std::optional<Snapshot> snapshot = read_snapshot(name);
  if (!snapshot)
    refuse("'" + directory_->path() + "/" + name +
           "' is damaged; it was whole when the log was opened");
  return std::move(*snapshot);
}

void Log::write_snapshot(const Snapshot& snapshot) {
  SnapshotHeader header{.number = snapshot.number,
                        .from = snapshot.from,
                        .chain = snapshot.chain,
                        .bytes = snapshot.payload.size(),
                        .sum = checksum(snapshot.payload)};
  std::array<std::byte, SnapshotHeader::kBytes> bytes{};
  header.write(bytes, name_sum_);
  const std::string name = snapshot_name(snapshot.number);
  const std::string new_name = name + std::string(kNewSuffix);
  const std::unique_ptr<File> file = directory_->create(new_name);
  file->write(0, bytes);
  if (!snapshot.payload.empty()) file->write(SnapshotHeader::kBytes, snapshot.payload);
  file->sync();
  directory_->rename(new_name, name);
  directory_->sync();
  snapshot_ = header;
}

void Log::remove_snapshots_but(std::uint64_t number) {
  for (const std::string& name : directory_->names()) {
    const std::optional<std::uint64_t> other = number_of_snapshot(name);
    if (other && *other != number) directory_->remove(name);
  }
}

void Log::store(Snapshot snapshot) {
  if (!failure_.empty()) throw Error(failure_);
  if (snapshot_ && snapshot.number <= snapshot_->number) return;
  DUNLIN_ASSERT_ALWAYS(
      snapshot.from >= first() && snapshot.from <= snapshot.number && snapshot.number <= next_,
      "LOG-S1: a snapshot stands for records that are on the disk");
  try {
    snapshot.chain = chain_before(snapshot.from);
    write_snapshot(snapshot);
    remove_snapshots_but(snapshot.number);
  } catch (const std::exception& error) {
    fail("a snapshot of the records below " + std::to_string(snapshot.number) +
         " could not be stored, and nothing is written any more: " + error.what());
  }
}

void Log::begin_copy(std::uint64_t next) {
  if (!failure_.empty()) throw Error(failure_);
  try {
    mark_.copying = next;
    for (std::size_t i = 0; i < Mark::kPlaces; ++i) write_mark(true);  // no older one is without it
  } catch (const std::exception& error) {
    fail("it could not be marked as half copied, and nothing is written any more: " +
         std::string(error.what()));
  }
}

void Log::end_copy() {
  if (!failure_.empty()) throw Error(failure_);
  if (mark_.copying == 0) return;
  try {
    mark_.copying = 0;
    for (std::size_t i = 0; i < Mark::kPlaces; ++i) write_mark(true);
  } catch (const std::exception& error) {
    fail("it could not be marked as copied, and nothing is written any more: " +
         std::string(error.what()));
  }
}

void Log::begin_anew(const std::optional<Snapshot>& snapshot) {
  if (!failure_.empty()) throw Error(failure_);
  DUNLIN_ASSERT_ALWAYS(mark_.copying > 0,
                       "LOG-S3: a log that is replaced is marked as half copied");
  try {
    snapshot_.reset();
    if (snapshot) write_snapshot(*snapshot);
    mark_.first = snapshot ? snapshot->from : 1;  // now the snapshot counts (find_snapshot)
    mark_.synced = mark_.first;
    for (std::size_t i = 0; i < Mark::kPlaces; ++i) write_mark(true);
    begin_anew();
  } catch (const std::exception& error) {
    fail(
        "it could not be replaced by a copy of another member's, and nothing is written any "
        "more: " +
        std::string(error.what()));
  }
}

/// The mark says where; the segments of the log before do not count.
void Log::begin_anew() {
  for (const std::string& name : directory_->names())
    if (first_of_segment(name)) directory_->remove(name);
  clear_away();
  directory_->sync();
  segments_.clear();
  next_ = snapshot_ ? snapshot_->from : 1;
  chain_ = snapshot_ ? snapshot_->chain : name_sum_;
  mark_.first = mark_.synced = next_;
  for (std::size_t i = 0; i < Mark::kPlaces; ++i) write_mark(true);
  make_segment();
}

/// Whether the segments that are there are those of the copy, which begins where the mark says.
bool Log::continues_copy(const std::vector<std::uint64_t>& firsts) {
  if (firsts.empty() || firsts.front() != mark_.first) return false;
  std::array<std::byte, SegmentHeader::kBytes> bytes{};
  std::string fault;
  if (directory_->open(segment_name(firsts.front()))->read(0, bytes) < bytes.size()) return false;
  const std::optional<SegmentHeader> header = SegmentHeader::read(bytes, fault);
  const std::uint64_t chain = snapshot_ ? snapshot_->chain : name_sum_;
  return header && header->name == options_.name && header->chain == chain;
}

}  // namespace dunlin::log

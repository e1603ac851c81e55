#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <dunlin/error.hpp>

#include "assert.hpp"
#include "log/checksum.hpp"
#include "log/log.hpp"

/// Snapshots: a file is complete and synced before it has its name. Then the older snapshot is
/// removed, and the records that the new one stands for may be.
namespace dunlin::log {
namespace {
constexpr std::string_view kNewSuffix = ".new";
}

/// Takes the latest snapshot.
void Log::find_snapshot() {
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : directory_->names())
    if (const std::optional<std::uint64_t> number = number_of_snapshot(name, set_))
      numbers.push_back(*number);
  std::ranges::sort(numbers, std::greater());
  for (const std::uint64_t number : numbers) {
    const std::string name = snapshot_name(number, set_);
    std::optional<Snapshot> found = read_snapshot(name);
    if (!found)
      refuse("'" + directory_->path() + "/" + name + "' is damaged, or another log's snapshot" +
             what_to_do());
    snapshot_ = SnapshotHeader{.number = found->number,
                               .from = found->from,
                               .chain = found->chain,
                               .bytes = found->payload.size()};
    if (options_.on_snapshot) options_.on_snapshot(*found);
    return;
  }
}

/// Refuses the log if records that it needs beside the snapshot are missing.
void Log::check_snapshot() const {
  if (!snapshot_ && first() > 1)
    refuse("'" + directory_->path() + "' has no snapshot, which stands for the records below " +
           std::to_string(first()) + what_to_do());
  if (!snapshot_) return;
  const std::string file =
      "'" + directory_->path() + "/" + snapshot_name(snapshot_->number, set_) + "'";
  if (snapshot_->number > next_)
    refuse(file + " stands for the records below " + std::to_string(snapshot_->number) +
           ", and those from " + std::to_string(next_) + " on are missing" + what_to_do());
  if (snapshot_->from < first())
    refuse("'" + directory_->path() + "/" + name_of_segment(snapshot_->from) +
           "' is missing, with " + range(snapshot_->from, first()) + what_to_do());
}

std::optional<Snapshot> Log::read_snapshot(const std::string& name) {
  const std::unique_ptr<File> file = directory_->open(name);
  std::array<std::byte, SnapshotHeader::kBytes> bytes{};
  if (file->read(0, bytes) < bytes.size()) return std::nullopt;
  const std::optional<SnapshotHeader> header = SnapshotHeader::read(bytes, name_sum_);
  if (!header || snapshot_name(header->number, set_) != name ||
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
  const std::string name = snapshot_name(snapshot_->number, set_);
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
  const std::string name = snapshot_name(snapshot.number, set_);
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
    const std::optional<std::uint64_t> other = number_of_snapshot(name, set_);
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

/// The copy has the other set of files.
void Log::begin_copy(const std::optional<Snapshot>& snapshot) {
  if (!failure_.empty()) throw Error(failure_);
  DUNLIN_ASSERT_ALWAYS(!original_, "LOG-S3: there is one copy at a time");
  try {
    original_ = Original{.segments = std::exchange(segments_, {}),
                         .last = std::move(last_),
                         .snapshot = std::exchange(snapshot_, std::nullopt),
                         .next = std::exchange(next_, snapshot ? snapshot->from : 1),
                         .chain = std::exchange(chain_, snapshot ? snapshot->chain : name_sum_)};
    set_ = opposite(mark_.set);
    remove_all(set_);
    directory_->sync();
    if (snapshot) write_snapshot(*snapshot);
    make_segment();
  } catch (const std::exception& error) {
    fail("no copy of another member's could be begun, and nothing is written any more: " +
         std::string(error.what()));
  }
}

/// One synced mark makes the copy the log; the second one is there in case the first is damaged.
void Log::end_copy() {
  if (!failure_.empty()) throw Error(failure_);
  DUNLIN_ASSERT_ALWAYS(original_.has_value(), "LOG-S3: a copy that ends has begun");
  DUNLIN_ASSERT_ALWAYS(!snapshot_ || snapshot_->number <= next_,
                       "LOG-S1: a snapshot stands for records that are on the disk");
  try {
    mark_.set = set_;
    mark_.first = first();
    mark_.synced = next_;
    for (std::size_t i = 0; i < Mark::kPlaces; ++i) write_mark(true);
    original_.reset();
    remove_all(opposite(set_));
    directory_->sync();
  } catch (const std::exception& error) {
    fail(
        "it could not be replaced by a copy of another member's, and nothing is written any "
        "more: " +
        std::string(error.what()));
  }
}

void Log::drop_copy() {
  if (!failure_.empty()) throw Error(failure_);
  DUNLIN_ASSERT_ALWAYS(original_.has_value(), "LOG-S3: a copy that is dropped has begun");
  segments_ = std::move(original_->segments);
  last_ = std::move(original_->last);
  snapshot_ = original_->snapshot;
  next_ = original_->next;
  chain_ = original_->chain;
  set_ = mark_.set;
  original_.reset();
  try {
    remove_all(opposite(set_));
  } catch (const std::exception& error) {
    fail("half a copy could not be removed, and nothing is written any more: " +
         std::string(error.what()));
  }
}

}  // namespace dunlin::log

#include "log/log.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <dunlin/error.hpp>

#include "assert.hpp"
#include "log/checksum.hpp"

namespace dunlin::log {

std::string range(std::uint64_t first, std::uint64_t next) {
  return next - first == 1 ? "record " + std::to_string(first)
                           : "records " + std::to_string(first) + " to " + std::to_string(next - 1);
}

void Batch::append(std::uint32_t kind, std::span<const std::byte> head,
                   std::span<const std::byte> payload) {
  const std::size_t used = head.size() + payload.size();
  if (used > UINT32_MAX)
    throw Error("a log's record of " + std::to_string(used) +
                " bytes; its length must fit in 32 bits");
  const std::size_t at = bytes_.size();
  bytes_.resize(at + RecordHeader::kBytes + static_cast<std::size_t>(padded_bytes(used)));
  RecordHeader{.bytes = static_cast<std::uint32_t>(used), .kind = kind, .place = records_++}.write(
      bytes_.data() + at);
  std::byte* to = bytes_.data() + at + RecordHeader::kBytes;
  if (!head.empty()) std::memcpy(to, head.data(), head.size());
  if (!payload.empty()) std::memcpy(to + head.size(), payload.data(), payload.size());
}

void Batch::keep(std::uint32_t records) noexcept {
  DUNLIN_ASSERT_ALWAYS(records <= records_, "a batch keeps no more records than it has");
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < records; ++i)
    at += RecordHeader::kBytes +
          static_cast<std::size_t>(padded_bytes(RecordHeader::read(&bytes_[at]).bytes));
  bytes_.resize(at);
  records_ = records;
}

Log::Log(std::unique_ptr<Directory> directory, LogOptions options)
    : directory_(std::move(directory)), options_(std::move(options)), name_sum_(0), chain_(0) {
  if (options_.read_only && options_.name.empty()) take_name_of_first_segment();
  if (options_.name.empty() || options_.name.size() > kMaxNameBytes)
    refuse("a log's name has 1 to " + std::to_string(kMaxNameBytes) + " bytes");
  name_sum_ = chain_ = checksum(options_.name);
  open();
}
Log::~Log() = default;

std::vector<SegmentInfo> Log::segments() const {
  std::vector<SegmentInfo> segments;
  segments.reserve(segments_.size());
  for (const Segment& segment : segments_)
    segments.push_back(
        {.file = name_of_segment(segment.first), .first = segment.first, .bytes = segment.bytes});
  return segments;
}

void Log::refuse(const std::string& what) const {
  throw Error(options_.name.empty() ? what : "log '" + options_.name + "': " + what);
}

std::string Log::place(const Segment& segment, std::uint64_t offset) const {
  return "'" + directory_->path() + "/" + name_of_segment(segment.first) + "' at offset " +
         std::to_string(offset);
}

void Log::write_mark(bool sync) {
  ++mark_.revision;
  std::array<std::byte, Mark::kBytes> bytes{};
  mark_.write(bytes, name_sum_);
  mark_file_->write(mark_.revision % Mark::kPlaces * Mark::kStride, bytes);
  if (sync) mark_file_->sync();
}

/// Fills in numbers, chains and checks: they are known once the records before are on the disk.
void Log::seal(Batch& batch) noexcept {
  DUNLIN_ASSERT_ALWAYS(failure_.empty(), "LOG-D5: nothing is written after a failure");
  std::uint64_t number = next_;
  std::uint64_t chain = chain_;
  for (std::size_t at = 0; at < batch.bytes_.size();) {
    std::byte* bytes = batch.bytes_.data() + at;
    RecordHeader header = RecordHeader::read(bytes);
    const auto padded = static_cast<std::size_t>(padded_bytes(header.bytes));
    header.number = number++;
    header.previous = chain;
    header.chain = chain = header.chain_over({bytes + RecordHeader::kBytes, padded});
    if (options_.on_record)
      options_.on_record({.number = header.number,
                          .kind = header.kind,
                          .payload = {bytes + RecordHeader::kBytes, header.bytes}},
                         header.previous);
    header.check = header.check_over(check_seed());
    header.write(bytes);
    at += RecordHeader::kBytes + padded;
  }
  DUNLIN_ASSERT_ALWAYS(number == next_ + batch.records(), "LOG-D2: records are numbered in turn");
}

void Log::write_and_sync(std::span<const std::byte> bytes) {
  last_->write(segments_.back().bytes, bytes);
  last_->sync();
}

void Log::commit(Batch& batch) {
  if (!failure_.empty()) throw Error(failure_);
  if (batch.records() == 0) return;
  const std::uint64_t first = next_;
  const std::uint64_t records = batch.records();
  try {
    const std::uint64_t filled = segments_.back().bytes;
    if (filled > SegmentHeader::kBytes && filled + batch.bytes() > options_.segment_bytes)
      make_segment();
    seal(batch);
    write_and_sync(batch.bytes_);
    const std::span<const std::byte> bytes = batch.bytes_;
    std::size_t at = 0;
    for (std::uint64_t i = 1; i < records; ++i)
      at += RecordHeader::kBytes +
            static_cast<std::size_t>(padded_bytes(RecordHeader::read(&bytes[at]).bytes));
    chain_ = RecordHeader::read(&bytes[at]).chain;
    segments_.back().bytes += bytes.size();
    next_ += records;
    if (original_) return;  // the mark belongs to the original
    mark_.synced = next_;
    write_mark(false);  // not synced, as the next opening can do without it
  } catch (const std::exception& error) {
    fail(range(first, first + records) + " could not be made durable, and nothing is written any " +
         "more: " + error.what());
  }
}

/// Nothing is written any more: what a failed sync left in memory may only look written.
void Log::fail(const std::string& what) {
  failure_ = "log '" + options_.name + "': " + what;
  throw Error(failure_);
}

const Log::Segment& Log::segment_of(std::uint64_t number) const noexcept {
  DUNLIN_ASSERT_ALWAYS(!segments_.empty(), "an open log has a segment");
  const auto after = std::ranges::upper_bound(segments_, number, {}, &Segment::first);
  return *std::prev(after == segments_.begin() ? std::next(after) : after);
}

std::uint64_t Log::chain_before(std::uint64_t number) {
  if (number == next_) return chain_;
  if (number == first()) return segments_.front().chain;
  LogReader reader(*this, number);
  return reader.chain();
}

void Log::truncate_from(std::uint64_t number) {
  if (!failure_.empty()) throw Error(failure_);
  DUNLIN_ASSERT_ALWAYS(!original_, "LOG-S3: nothing is cut off from half a copy");
  if (number < first() || number > next_)
    refuse("it cannot be cut off before record " + std::to_string(number) + ": it has " +
           std::to_string(first()) + " to " + std::to_string(next_ - 1));
  if (snapshot_ && number < snapshot_->number)
    refuse("it cannot be cut off before record " + std::to_string(number) +
           ": its snapshot stands for those below " + std::to_string(snapshot_->number));
  if (number == next_) return;
  try {
    cut_off(number);
  } catch (const std::exception& error) {
    fail(range(number, next_) +
         " could not be cut off, and nothing is written any more: " + error.what());
  }
}

void Log::cut_off(std::uint64_t number) {
  mark_.synced = std::min(mark_.synced, number);
  for (std::size_t i = 0; i < Mark::kPlaces; ++i) write_mark(true);  // replaces every older mark
  while (segments_.size() > 1 && segments_.back().first >= number) {
    directory_->remove(name_of_segment(segments_.back().first));
    directory_->sync();
    segments_.pop_back();
  }
  Segment& last = segments_.back();
  last_ = directory_->open(name_of_segment(last.first));
  SegmentCursor cursor(*last_, check_seed(), last.first, last.chain);
  while (cursor.number() < number)
    if (!cursor.next())
      refuse(place(last, cursor.offset()) + ": record " + std::to_string(cursor.number()) +
             " is damaged");
  last_->truncate(cursor.offset());
  last_->sync();
  last.bytes = cursor.offset();
  next_ = number;
  chain_ = cursor.chain();
}

void Log::trim_before(std::uint64_t number) {
  if (!failure_.empty()) throw Error(failure_);
  DUNLIN_ASSERT_ALWAYS(!original_, "LOG-S3: half a copy is not trimmed");
  const std::uint64_t needed = snapshot_ ? snapshot_->from : 1;
  const Segment& kept = segment_of(std::min({number, next_, needed}));
  if (kept.first == segments_.front().first) return;
  DUNLIN_ASSERT_ALWAYS(kept.first <= needed, "LOG-S2: a restart's records are not trimmed");
  try {
    forget(kept.first);
  } catch (const std::exception& error) {
    fail("the records below " + std::to_string(kept.first) +
         " could not be removed, and nothing is written any more: " + error.what());
  }
}

void Log::forget(std::uint64_t first) {
  mark_.first = first;
  for (std::size_t i = 0; i < Mark::kPlaces; ++i) write_mark(true);
  while (segments_.front().first < mark_.first) {
    directory_->remove(name_of_segment(segments_.front().first));
    segments_.erase(segments_.begin());
  }
  directory_->sync();
}

LogReader::LogReader(Log& log, std::uint64_t from) : log_(log) {
  if (from < log.first() || from > log.next())
    log.refuse("it has no record " + std::to_string(from) + ", but " + std::to_string(log.first()) +
               " to " + std::to_string(log.next() - 1));
  const Log::Segment& segment = log.segment_of(from);
  open(static_cast<std::size_t>(&segment - log.segments_.data()));
  while (cursor_->number() < from && next()) {
  }
}

void LogReader::open(std::size_t segment) {
  segment_ = segment;
  const Log::Segment& at = log_.segments_[segment];
  file_ = log_.directory_->open(log_.name_of_segment(at.first));
  cursor_.emplace(*file_, log_.check_seed(), at.first, at.chain);
}

std::optional<Record> LogReader::next() {
  if (cursor_->number() >= log_.next()) return std::nullopt;
  if (segment_ + 1 < log_.segments_.size() &&
      cursor_->number() == log_.segments_[segment_ + 1].first)
    open(segment_ + 1);
  std::optional<Record> record = cursor_->next();
  if (!record)
    log_.refuse(log_.place(log_.segments_[segment_], cursor_->offset()) + ": record " +
                std::to_string(cursor_->number()) +
                " is damaged; it was whole when the log was opened");
  return record;
}

}  // namespace dunlin::log

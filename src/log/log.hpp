#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "log/disk.hpp"
#include "log/format.hpp"
#include "log/segment.hpp"

/// A log: numbered records in segment files of one directory, appended, checked, and never changed.
/// docs/log.md gives the promises (LOG-D1 to LOG-D8), and the messages about damage. One thread at
/// a time; it waits for the disk. (GroupCommit does that beside the thread that has the records.)
///
///     Log log(disk.open("/var/lib/orders"), {.name = "rack7/orders"});
///     for (const std::string& notice : log.notices()) ...;
///     for (LogReader reader(log, log.first()); auto record = reader.next();) replay(*record);
///     Batch batch;
///     batch.append(kind, {}, payload);
///     log.commit(batch);  // written and synced: records below log.next() survive
namespace dunlin::log {

/// "record 5", or "records 5 to 7".
[[nodiscard]] std::string range(std::uint64_t first, std::uint64_t next);

/// Records that are to be committed together.
class Batch {
 public:
  /// The payload comes in two pieces.
  void append(std::uint32_t kind, std::span<const std::byte> head,
              std::span<const std::byte> payload);
  [[nodiscard]] std::uint32_t records() const noexcept { return records_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.size(); }
  /// Forgets all records but the first ones.
  void keep(std::uint32_t records) noexcept;
  /// Forgets all records; keeps the memory.
  void clear() noexcept {
    bytes_.clear();
    records_ = 0;
  }

 private:
  friend class Log;
  std::vector<std::byte> bytes_;  // headers without numbers, chains and checks
  std::uint32_t records_ = 0;
};

/// The user's state as of a number, instead of the records before it.
struct Snapshot {
  std::uint64_t number = 0;  // the first record that the snapshot does not stand for
  std::uint64_t from = 0;    // the first record that a restart needs besides; at most `number`
  std::uint64_t chain = 0;   // chain of the record before `from`
  std::vector<std::byte> payload = {};
};

struct LogOptions {
  std::string name;                                       // at most kMaxNameBytes
  std::uint64_t segment_bytes = std::uint64_t{64} << 20;  // a longer commit has one for itself
  /// Called with each record that opening the log reads, and the chain before it; then with each
  /// record that is committed, on the thread that commits.
  std::function<void(const Record&, std::uint64_t chain_before)> on_record = {};
  /// Called with the snapshot that opening the log finds, before any record.
  std::function<void(const Snapshot&)> on_snapshot = {};
  /// Opening reads only the headers of segments whose records are all below this number; LogReader
  /// checks them later (LOG-D8). It always reads the last segment.
  std::uint64_t trust_below = 0;
  /// Changes nothing: the directory needs no lock, and another process may have it open. An empty
  /// name stands for the name in the first segment.
  bool read_only = false;
};

/// One file of a log.
struct SegmentInfo {
  std::string file = {};
  std::uint64_t first = 0;  // number of the segment's first record
  std::uint64_t bytes = 0;
};

class Log {
 public:
  /// Opens what is there, and checks all of it; makes a log where there is none. Throws Error for a
  /// log that cannot be trusted.
  Log(std::unique_ptr<Directory> directory, LogOptions options);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  /// Damage that opening the log found and repaired, as sentences.
  [[nodiscard]] const std::vector<std::string>& notices() const noexcept { return notices_; }
  [[nodiscard]] const std::string& name() const noexcept { return options_.name; }
  [[nodiscard]] std::string path() const { return directory_->path(); }

  /// The number of the oldest record; next() if there is no record.
  [[nodiscard]] std::uint64_t first() const noexcept { return segments_.front().first; }
  /// The number of the next record: all records below it are on the disk.
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  /// The chain of the records below next(): equal for equal records.
  [[nodiscard]] std::uint64_t chain() const noexcept { return chain_; }
  /// Reads the chain of the records below this number, which must be from first() to next().
  [[nodiscard]] std::uint64_t chain_before(std::uint64_t number);
  /// The log's files, oldest first.
  [[nodiscard]] std::vector<SegmentInfo> segments() const;
  [[nodiscard]] const Mark& mark() const noexcept { return mark_; }

  /// Numbers the records from next() on, writes and syncs them. Throws Error: then none of them is
  /// certain to be on the disk, nothing can be committed any more, and every call says why.
  void commit(Batch& batch);
  /// Forgets records from this number on, which is from first() to next(). Throws Error as commit()
  /// does.
  void truncate_from(std::uint64_t number);
  /// Removes segments all of whose records are below this number, and below the snapshot's `from`,
  /// as a restart needs the others (LOG-S2). Throws Error as commit() does.
  void trim_before(std::uint64_t number);

  // --- snapshots, and copies of other logs -------------------------------------------------------
  /// Stores and syncs a snapshot in place of an older one. `from` is from first() to next(), and
  /// `number` from there to next(). Trims nothing. Throws Error as commit() does.
  void store(Snapshot snapshot);
  /// The latest snapshot; none: the log has all records, from 1 on.
  [[nodiscard]] const std::optional<SnapshotHeader>& snapshot() const noexcept { return snapshot_; }
  /// Requires that there is a snapshot. Throws Error if it is damaged.
  [[nodiscard]] Snapshot read_snapshot();
  /// Begins a copy of another log, with a snapshot of that log, or, without one, with record 1.
  /// Records are committed to the copy from here on; the old log stays on the disk, and counts
  /// after a crash (LOG-S3). Throws Error as commit() does.
  void begin_copy(const std::optional<Snapshot>& snapshot);
  /// Makes the copy the log, and removes the old files. Throws Error as commit() does.
  void end_copy();
  /// Goes back to the log before begin_copy(). Throws Error as commit() does.
  void drop_copy();

 private:
  friend class LogReader;
  friend class TailReader;
  struct Segment {
    std::uint64_t first;
    std::uint64_t chain;  // chain of the record before
    std::uint64_t bytes = SegmentHeader::kBytes;
  };
  /// The old log, while a copy is made beside it.
  struct Original {
    std::vector<Segment> segments;
    std::unique_ptr<File> last;
    std::optional<SnapshotHeader> snapshot;
    std::uint64_t next;
    std::uint64_t chain;
  };

  // open.cpp
  void open();
  [[nodiscard]] std::vector<std::uint64_t> find_segments();
  void clear_away();
  [[nodiscard]] std::string what_to_do() const;
  void take_name_of_first_segment();
  // snapshot.cpp
  void find_snapshot();
  void check_snapshot() const;
  [[nodiscard]] std::optional<Snapshot> read_snapshot(const std::string& file);
  void write_snapshot(const Snapshot& snapshot);
  void remove_snapshots_but(std::uint64_t number);
  void remove_all(FileSet set);
  void make_log();
  void make_segment();
  void make_mark();
  bool read_mark();
  void refuse_anothers();
  void refuse_if_anothers(const std::string& file, const SegmentHeader& header) const;
  void read_header(std::uint64_t first);
  void check_against_before(std::uint64_t first, const SegmentHeader& header) const;
  void scan(bool last);
  void pass_over(std::uint64_t next_first);
  void judge(SegmentCursor& cursor, bool last);
  void secure_tail();
  // log.cpp
  [[noreturn]] void refuse(const std::string& what) const;
  [[nodiscard]] std::string name_of_segment(std::uint64_t first) const {
    return segment_name(first, set_);
  }
  [[nodiscard]] std::string place(const Segment& segment, std::uint64_t offset) const;
  [[nodiscard]] const Segment& segment_of(std::uint64_t number) const noexcept;
  void write_mark(bool sync);
  [[nodiscard]] std::uint64_t check_seed() const noexcept { return name_sum_ ^ mark_.salt; }
  [[noreturn]] void fail(const std::string& what);
  void cut_off(std::uint64_t number);
  void forget(std::uint64_t first);
  void seal(Batch& batch) noexcept;
  void write_and_sync(std::span<const std::byte> bytes);

  std::unique_ptr<Directory> directory_;
  LogOptions options_;
  std::uint64_t name_sum_;
  std::vector<std::string> notices_;
  std::vector<Segment> segments_;  // ascending; never empty once the log is open
  std::unique_ptr<File> last_;     // the last segment's file
  std::unique_ptr<File> mark_file_;
  Mark mark_;
  FileSet set_ = FileSet::plain;  // the mark's set, or, while a copy is made, the other one
  std::optional<Original> original_;
  std::optional<SnapshotHeader> snapshot_;
  std::uint64_t next_ = 1;
  std::uint64_t chain_;
  bool passed_over_ = false;  // opening has not read the segment before
  std::string failure_;
};

/// Reads a log's records in turn. The log must not be changed meanwhile.
class LogReader {
 public:
  /// Reads from this number on, which is from first() to next().
  LogReader(Log& log, std::uint64_t from);
  /// None after the last record. Valid until the next call. Throws Error for a damaged record.
  [[nodiscard]] std::optional<Record> next();
  /// The chain of all records that were read.
  [[nodiscard]] std::uint64_t chain() const noexcept { return cursor_->chain(); }

 private:
  void open(std::size_t segment);

  Log& log_;
  std::size_t segment_ = 0;
  std::unique_ptr<File> file_;
  std::optional<SegmentCursor> cursor_;
};

}  // namespace dunlin::log

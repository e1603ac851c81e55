#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "log/disk.hpp"
#include "log/log.hpp"

/// Appends to a log without waiting for the disk. Records appended while a commit is under way
/// go into the next one, all together. One thread at a time; a worker has the log while it commits.
namespace dunlin::log {

class GroupCommit {
 public:
  /// The log must outlive this object, and nothing else may use it.
  GroupCommit(Disk& disk, Log& log);

  /// Appends record next(). The payload comes in two pieces, and is copied.
  void append(std::uint32_t kind, std::span<const std::byte> head,
              std::span<const std::byte> payload);
  [[nodiscard]] std::uint64_t next() const noexcept { return first_waiting_ + waiting_.records(); }
  /// Takes back the last records, durable or not.
  void cut(std::uint64_t records) noexcept;
  /// Stores a snapshot behind the records that it stands for, which are durable or wait, and
  /// removes the segments that no restart needs any more.
  void store(Snapshot snapshot) { beside_.snapshot = std::move(snapshot); }
  /// Records appended from here on go to a copy of another log, which begins with that snapshot, if
  /// there is one. The copy counts only from end_copy() on (LOG-S3). Requires settled().
  void begin_copy(std::optional<Snapshot> snapshot);
  /// Makes the copy the log, once the records that wait are written.
  void end_copy() noexcept;
  /// Goes back to the log before the copy. Requires settled(), and copying().
  void drop_copy() noexcept;
  [[nodiscard]] bool copying() const noexcept { return original_next_.has_value(); }
  /// All records below this one are on the disk.
  [[nodiscard]] std::uint64_t durable() const noexcept { return durable_; }
  /// Why no more records become durable: a sentence that names file and offset; empty: all is well.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

  /// Whether nothing waits or is under way: then the log may be read.
  [[nodiscard]] bool settled() const noexcept {
    return !working_ && !has_work() && failure_.empty();
  }
  /// Whether the log may be read now, though records wait to be written. If a commit is under way,
  /// it may not; then no further commit is started until the reader asks again, or takes its
  /// request back by the flag reader_waits().
  [[nodiscard]] bool may_read();
  [[nodiscard]] const std::shared_ptr<bool>& reader_waits() const noexcept { return reader_waits_; }
  /// Starts a commit of the waiting records, if none is under way. Returns whether there is news.
  bool poll();
  /// The fabric whose sleeper is woken when there is news; null: none.
  void wake(Fabric* fabric) { worker_->wake(fabric); }
  /// Waits until everything is durable, or has failed.
  void finish();
  [[nodiscard]] std::uint64_t commits() const noexcept { return commits_; }

 private:
  struct Copy {
    std::optional<Snapshot> snapshot;
  };
  /// The work beside a batch of records: the first three before it, the others behind it.
  struct Beside {
    bool drops_copy = false;
    std::optional<std::uint64_t> cut;  // the log is cut off from this record on
    std::optional<Copy> copy;
    bool ends_copy = false;
    std::optional<Snapshot> snapshot;
    [[nodiscard]] bool any() const noexcept {
      return drops_copy || cut || copy || ends_copy || snapshot;
    }
  };
  void work() noexcept;
  [[nodiscard]] bool has_work() const noexcept { return waiting_.records() > 0 || beside_.any(); }

  Log& log_;
  Batch waiting_;
  std::uint64_t first_waiting_;                 // number of the first record in waiting_
  std::optional<std::uint64_t> original_next_;  // next() before the copy; none: there is no copy
  Beside beside_;
  // While the worker works, only it touches these.
  Batch writing_;
  Beside doing_;
  std::string worker_failure_;
  std::uint64_t started_;  // the commit under way, or the last one, ends before this number
  std::uint64_t durable_;
  std::string failure_;
  std::uint64_t commits_ = 0;
  bool working_ = false;
  std::shared_ptr<bool> reader_waits_ = std::make_shared<bool>(false);
  std::unique_ptr<Worker> worker_;
};

}  // namespace dunlin::log

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
  /// The log must outlive it, and is its alone.
  GroupCommit(Disk& disk, Log& log);

  /// Gets number next(). The payload comes in two pieces, and is copied.
  void append(std::uint32_t kind, std::span<const std::byte> head,
              std::span<const std::byte> payload);
  [[nodiscard]] std::uint64_t next() const noexcept { return first_waiting_ + waiting_.records(); }
  /// Takes back the last ones, durable or not.
  void cut(std::uint64_t records) noexcept;
  /// A snapshot that stands for records which are durable, or wait: it is stored behind them, and
  /// the segments that it makes superfluous go.
  void store(Snapshot snapshot) { beside_.snapshot = std::move(snapshot); }
  /// Records appended from here on go to a copy of another log, which begins with that snapshot, if
  /// there is one. It counts only from end_copy() on (LOG-S3). Requires settled().
  void begin_copy(std::optional<Snapshot> snapshot);
  /// Behind the records that wait.
  void end_copy() noexcept;
  /// The log is what it was before. Requires settled(), and copying().
  void drop_copy() noexcept;
  [[nodiscard]] bool copying() const noexcept { return original_next_.has_value(); }
  /// All records below this one are on the disk.
  [[nodiscard]] std::uint64_t durable() const noexcept { return durable_; }
  /// Why nothing more will be: a sentence that names file and offset. Empty while all is well.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

  /// Nothing waits, and nothing is under way: the log may be read.
  [[nodiscard]] bool settled() const noexcept {
    return !working_ && !has_work() && failure_.empty();
  }
  /// Whether the log may be read now, though records wait to be written. While a commit is under
  /// way it may not; then no other one is started until the reader has asked again, or takes its
  /// request back by this flag.
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
  /// Done beside a batch of records: the first three before it, the others behind it.
  struct Beside {
    bool drops_copy = false;
    std::optional<std::uint64_t> cut;  // from here on the log is cut off
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
  std::uint64_t first_waiting_;                 // number of its first record
  std::optional<std::uint64_t> original_next_;  // next(), before there was a copy
  Beside beside_;
  // The worker's, while it works.
  Batch writing_;
  Beside doing_;
  std::string worker_failure_;
  std::uint64_t started_;  // number behind those that are written, or have been
  std::uint64_t durable_;
  std::string failure_;
  std::uint64_t commits_ = 0;
  bool working_ = false;
  std::shared_ptr<bool> reader_waits_ = std::make_shared<bool>(false);
  std::unique_ptr<Worker> worker_;
};

}  // namespace dunlin::log

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

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
  /// All records below this one are on the disk.
  [[nodiscard]] std::uint64_t durable() const noexcept { return durable_; }
  /// Why nothing more will be: a sentence that names file and offset. Empty while all is well.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

  /// Nothing waits, and nothing is under way: the log may be read.
  [[nodiscard]] bool settled() const noexcept {
    return !working_ && waiting_.records() == 0 && !cut_ && failure_.empty();
  }
  /// Starts a commit of what waits, if none is under way. Returns whether there is news.
  bool poll();
  /// Whose sleeper to wake when there is news; null: nobody's.
  void wake(Fabric* fabric) { worker_->wake(fabric); }
  /// Waits until everything is durable, or has failed.
  void finish();
  [[nodiscard]] std::uint64_t commits() const noexcept { return commits_; }

 private:
  void work() noexcept;

  Log& log_;
  Batch waiting_;
  std::uint64_t first_waiting_;       // number of its first record
  std::optional<std::uint64_t> cut_;  // from here on the log is cut off before they are written
  // The worker's, while it works.
  Batch writing_;
  std::optional<std::uint64_t> cutting_;
  std::string worker_failure_;
  std::uint64_t started_;  // number behind those that are written, or have been
  std::uint64_t durable_;
  std::string failure_;
  std::uint64_t commits_ = 0;
  bool working_ = false;
  std::unique_ptr<Worker> worker_;
};

}  // namespace dunlin::log

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "log/log.hpp"

namespace dunlin::log {

/// Reads a log's records in turn, step by step, while the log grows and is trimmed. The log is
/// changed between two steps only; resume() begins one. One thread at a time.
class TailReader {
 public:
  /// From this number on.
  TailReader(Log& log, std::uint64_t from) : log_(log), wanted_(from) {}

  /// Begins a step. False: the next record is not there any more, as it was trimmed.
  [[nodiscard]] bool resume();
  /// The next record, or one before the first that is wanted, which lies before it in its file.
  /// None behind the last. Valid until the next call. Throws Error for a record that is damaged by
  /// now.
  [[nodiscard]] std::optional<Record> next();
  /// Of the next record that is wanted.
  [[nodiscard]] std::uint64_t number() const noexcept { return wanted_; }
  /// Of the oldest record that is there.
  [[nodiscard]] std::uint64_t first() const noexcept { return log_.first(); }

 private:
  void open(std::size_t segment);

  Log& log_;
  std::uint64_t wanted_;
  std::uint64_t segment_first_ = 0;
  std::string file_name_;
  std::unique_ptr<File> file_;
  std::optional<SegmentCursor> cursor_;
};

}  // namespace dunlin::log

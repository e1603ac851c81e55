#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "log/log.hpp"

namespace dunlin::log {

/// Reads a log's records in turn while the log grows and is trimmed. It does so in steps, each
/// begun by resume(); the log changes only between two steps. One thread at a time.
class TailReader {
 public:
  /// Reads from this number on.
  TailReader(Log& log, std::uint64_t from) : log_(log), wanted_(from) {}

  /// Begins a step. False: the next record was trimmed.
  [[nodiscard]] bool resume();
  /// The next record, or a record that is before the first wanted one in its file. None after the
  /// last record. Valid until the next call. Throws Error for a damaged record.
  [[nodiscard]] std::optional<Record> next();
  /// The number of the next wanted record.
  [[nodiscard]] std::uint64_t number() const noexcept { return wanted_; }
  /// The number of the log's oldest record.
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

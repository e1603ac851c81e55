#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "log/disk.hpp"
#include "log/format.hpp"

namespace dunlin::log {

struct Record {
  std::uint64_t number;
  std::uint32_t kind;
  std::span<const std::byte> payload;  // valid until the next one is looked at
};

/// A file in pieces: at least a megabyte is read at once.
class Window {
 public:
  explicit Window(File& file) : file_(file), bytes_(file.bytes()) {}
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// Fewer than asked for only at the end. Valid until the next call.
  std::span<const std::byte> view(std::uint64_t offset, std::size_t bytes);

 private:
  File& file_;
  std::uint64_t bytes_;
  std::uint64_t start_ = 0;
  std::vector<std::byte> buffer_;
};

/// Goes from record to record of a segment, as long as they are whole and follow each other.
class SegmentCursor {
 public:
  SegmentCursor(File& file, std::uint64_t name_sum, std::uint64_t first, std::uint64_t chain)
      : window_(file), name_sum_(name_sum), number_(first), chain_(chain) {}

  /// None at the end, and where something else lies than the next record.
  [[nodiscard]] std::optional<Record> next();
  [[nodiscard]] bool at_end() const noexcept { return offset_ == window_.bytes(); }

  /// Of the next record: where it begins, its number, and the chain of the one before.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] std::uint64_t chain() const noexcept { return chain_; }
  [[nodiscard]] std::uint64_t file_bytes() const noexcept { return window_.bytes(); }

  /// Where behind offset() a record lies that was written only after the next record had been
  /// synced: then that one is not torn, but damaged.
  [[nodiscard]] std::optional<std::uint64_t> find_later_commit();

 private:
  [[nodiscard]] std::optional<RecordHeader> whole_at(std::uint64_t offset);

  Window window_;
  std::uint64_t name_sum_;
  std::uint64_t offset_ = SegmentHeader::kBytes;
  std::uint64_t number_;
  std::uint64_t chain_;
};

}  // namespace dunlin::log

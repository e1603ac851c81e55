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
  std::span<const std::byte> payload;  // valid until the next record is read
};

inline constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

/// Reads a file in pieces of at least `piece_bytes`.
class Window {
 public:
  explicit Window(File& file, std::size_t piece_bytes = kPieceBytes)
      : file_(file), piece_bytes_(piece_bytes), bytes_(file.bytes()) {}
  /// To be called if the file may have been changed.
  void look_again() {
    buffer_.clear();
    bytes_ = file_.bytes();
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// Has fewer bytes than asked for only at the end. Valid until the next call.
  std::span<const std::byte> view(std::uint64_t offset, std::size_t bytes);

 private:
  File& file_;
  std::size_t piece_bytes_;
  std::uint64_t bytes_;
  std::uint64_t start_ = 0;
  std::vector<std::byte> buffer_;
};

/// Goes from record to record of a segment, as long as they are whole and follow each other.
class SegmentCursor {
 public:
  /// `check_seed`: see RecordHeader::check_over().
  SegmentCursor(File& file, std::uint64_t check_seed, std::uint64_t first, std::uint64_t chain,
                std::size_t piece_bytes = kPieceBytes)
      : window_(file, piece_bytes), check_seed_(check_seed), number_(first), chain_(chain) {}

  /// None at the end, and where the bytes are not the next record.
  [[nodiscard]] std::optional<Record> next();
  /// To be called if the file may have been changed behind the records that were passed.
  void look_again() { window_.look_again(); }
  [[nodiscard]] bool at_end() const noexcept { return offset_ == window_.bytes(); }

  /// The next record's offset and number, and the chain of the record before it.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] std::uint64_t chain() const noexcept { return chain_; }
  [[nodiscard]] std::uint64_t file_bytes() const noexcept { return window_.bytes(); }

  /// The offset of a later record that was written only after the next record had been synced: then
  /// the next record is not torn, but damaged.
  [[nodiscard]] std::optional<std::uint64_t> find_later_commit();

 private:
  [[nodiscard]] std::optional<RecordHeader> header_at(std::uint64_t offset);
  [[nodiscard]] std::optional<RecordHeader> whole_at(std::uint64_t offset);

  Window window_;
  std::uint64_t check_seed_;
  std::uint64_t offset_ = SegmentHeader::kBytes;
  std::uint64_t number_;
  std::uint64_t chain_;
};

}  // namespace dunlin::log

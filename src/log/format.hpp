#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <dunlin/limits.hpp>

/// How a log lies in its files; docs/formats/log.md gives the offsets. Pure.
namespace dunlin::log {

static_assert(std::endian::native == std::endian::little, "logs are little-endian");

inline constexpr std::size_t kMaxNameBytes = 88;

/// In front of every segment.
struct SegmentHeader {
  static constexpr std::size_t kBytes = 128;
  static constexpr std::uint64_t kMagic = 0x474F4C4E4C4E5544;  // "DUNLNLOG"
  static constexpr std::uint32_t kVersion = 1;

  std::uint64_t first = 0;  // number of its first record
  std::uint64_t chain = 0;  // of the record before
  std::string name;         // of the log

  void write(std::span<std::byte, kBytes> to) const noexcept;
  /// Or what is wrong, as the end of a sentence that begins with the file's name.
  static std::optional<SegmentHeader> read(std::span<const std::byte, kBytes> from,
                                           std::string& fault);
};

/// Which files of a directory are meant: a copy of another log is made beside the log that it is to
/// replace, and the mark says which of the two counts (LOG-S3).
enum class FileSet : std::uint32_t { plain = 0, other = 1 };
[[nodiscard]] constexpr FileSet opposite(FileSet set) noexcept {
  return set == FileSet::plain ? FileSet::other : FileSet::plain;
}

[[nodiscard]] std::string segment_name(std::uint64_t first, FileSet set = FileSet::plain);
/// None if it is no segment's of that set.
[[nodiscard]] std::optional<std::uint64_t> first_of_segment(std::string_view file_name,
                                                            FileSet set) noexcept;
[[nodiscard]] bool is_segment(std::string_view file_name) noexcept;  // of any set

/// In front of every record.
struct RecordHeader {
  static constexpr std::size_t kBytes = 40;
  static constexpr std::size_t kAlignment = 8;

  std::uint32_t bytes = 0;  // of the payload
  std::uint32_t kind = 0;   // the user's
  std::uint64_t number = 0;
  std::uint64_t previous = 0;  // chain of the record before
  std::uint64_t chain = 0;     // over all records up to this one
  std::uint32_t place = 0;     // how many records of its commit come before it
  std::uint32_t check = 0;     // of this header

  /// All but place and check go into the chain: so it is the same in all logs that have the same
  /// records. `padded` is the payload with its padding.
  [[nodiscard]] std::uint64_t chain_over(std::span<const std::byte> padded) const noexcept;
  /// `seed`: the checksum of the log's name, with the salt of its mark. No other log's record is
  /// taken for one of this log, and nobody who writes a message knows the salt.
  [[nodiscard]] std::uint32_t check_over(std::uint64_t seed) const noexcept;
  void write(std::byte* to) const noexcept;
  static RecordHeader read(const std::byte* from) noexcept;
};
static_assert(sizeof(RecordHeader) == RecordHeader::kBytes);

[[nodiscard]] constexpr std::uint64_t padded_bytes(std::uint64_t payload_bytes) noexcept {
  return round_up(payload_bytes, RecordHeader::kAlignment);
}

/// The header of a snapshot, which a restart takes instead of the records before it.
struct SnapshotHeader {
  static constexpr std::size_t kBytes = 64;
  static constexpr std::uint64_t kMagic = 0x504E534E4C4E5544;  // "DUNLNSNP"
  static constexpr std::uint32_t kVersion = 1;

  std::uint64_t number = 0;  // of the first record that it does not stand for
  std::uint64_t from = 0;    // of the first record that is needed beside it; at most number
  std::uint64_t chain = 0;   // before `from`
  std::uint64_t bytes = 0;   // of the payload
  std::uint64_t sum = 0;     // the payload's checksum

  void write(std::span<std::byte, kBytes> to, std::uint64_t name_sum) const noexcept;
  /// None if it is damaged, of another version, or another log's.
  static std::optional<SnapshotHeader> read(std::span<const std::byte, kBytes> from,
                                            std::uint64_t name_sum) noexcept;
};
[[nodiscard]] std::string snapshot_name(std::uint64_t number, FileSet set = FileSet::plain);
/// None if it is no snapshot's of that set.
[[nodiscard]] std::optional<std::uint64_t> number_of_snapshot(std::string_view file_name,
                                                              FileSet set) noexcept;

/// How much is known to have been synced, in a file of its own: two places, written in turn.
struct Mark {
  static constexpr std::size_t kBytes = 56;
  static constexpr std::size_t kPlaces = 2;
  static constexpr std::uint64_t kStride = 4096;               // so that no sector has both
  static constexpr std::uint64_t kMagic = 0x4B524D4E4C4E5544;  // "DUNLNMRK"
  static constexpr std::uint32_t kVersion = 3;

  std::uint64_t revision = 0;
  std::uint64_t first = 1;       // the lowest number that was not trimmed
  std::uint64_t synced = 1;      // all records below it were
  FileSet set = FileSet::plain;  // the files that count
  std::uint64_t salt = 0;        // of the records' checks; 0: an older version made the log

  void write(std::span<std::byte, kBytes> to, std::uint64_t name_sum) const noexcept;
  /// Reads those of versions 1 and 2, too.
  static std::optional<Mark> read(std::span<const std::byte, kBytes> from,
                                  std::uint64_t name_sum) noexcept;
  /// The version of a mark that only a newer program can read; none: it is of none.
  static std::optional<std::uint32_t> newer_version(
      std::span<const std::byte, kBytes> from) noexcept;
};

}  // namespace dunlin::log

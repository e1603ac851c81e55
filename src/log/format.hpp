#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <dunlin/limits.hpp>

/// The format of a log's files; docs/formats/log.md gives the offsets. Pure.
namespace dunlin::log {

static_assert(std::endian::native == std::endian::little, "logs are little-endian");

inline constexpr std::size_t kMaxNameBytes = 88;

/// The header of a segment.
struct SegmentHeader {
  static constexpr std::size_t kBytes = 128;
  static constexpr std::uint64_t kMagic = 0x474F4C4E4C4E5544;  // "DUNLNLOG"
  static constexpr std::uint32_t kVersion = 1;

  std::uint64_t first = 0;  // number of the segment's first record
  std::uint64_t chain = 0;  // chain of the record before
  std::string name;         // the log's name

  void write(std::span<std::byte, kBytes> to) const noexcept;
  /// None: `fault` says what is wrong, as the end of a sentence that begins with the file's name.
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
/// None if the file is no segment of that set.
[[nodiscard]] std::optional<std::uint64_t> first_of_segment(std::string_view file_name,
                                                            FileSet set) noexcept;
[[nodiscard]] bool is_segment(std::string_view file_name) noexcept;  // of any set

/// The header of a record.
struct RecordHeader {
  static constexpr std::size_t kBytes = 40;
  static constexpr std::size_t kAlignment = 8;

  std::uint32_t bytes = 0;  // length of the payload
  std::uint32_t kind = 0;   // has a meaning for the user only
  std::uint64_t number = 0;
  std::uint64_t previous = 0;  // chain of the record before
  std::uint64_t chain = 0;     // over all records up to this one
  std::uint32_t place = 0;     // how many records of its commit come before it
  std::uint32_t check = 0;     // checksum of this header

  /// The chain is equal in all logs that have equal records, because it leaves out `place` and
  /// `check`. `padded` is the payload with its padding.
  [[nodiscard]] std::uint64_t chain_over(std::span<const std::byte> padded) const noexcept;
  /// `seed` comes from the log's name and the salt of its mark: so no record of another log passes
  /// for one of this log, nor a message, as no sender knows the salt.
  [[nodiscard]] std::uint32_t check_over(std::uint64_t seed) const noexcept;
  void write(std::byte* to) const noexcept;
  static RecordHeader read(const std::byte* from) noexcept;
};
static_assert(sizeof(RecordHeader) == RecordHeader::kBytes);

[[nodiscard]] constexpr std::uint64_t padded_bytes(std::uint64_t payload_bytes) noexcept {
  return round_up(payload_bytes, RecordHeader::kAlignment);
}

/// The header of a snapshot, which a restart reads instead of the records before it.
struct SnapshotHeader {
  static constexpr std::size_t kBytes = 64;
  static constexpr std::uint64_t kMagic = 0x504E534E4C4E5544;  // "DUNLNSNP"
  static constexpr std::uint32_t kVersion = 1;

  std::uint64_t number = 0;  // the first record that the snapshot does not stand for
  std::uint64_t from = 0;    // the first record that a restart needs besides; at most `number`
  std::uint64_t chain = 0;   // chain of the record before `from`
  std::uint64_t bytes = 0;   // length of the payload
  std::uint64_t sum = 0;     // checksum of the payload

  void write(std::span<std::byte, kBytes> to, std::uint64_t name_sum) const noexcept;
  /// None if the header is damaged, has another version, or belongs to another log.
  static std::optional<SnapshotHeader> read(std::span<const std::byte, kBytes> from,
                                            std::uint64_t name_sum) noexcept;
};
[[nodiscard]] std::string snapshot_name(std::uint64_t number, FileSet set = FileSet::plain);
/// None if the file is no snapshot of that set.
[[nodiscard]] std::optional<std::uint64_t> number_of_snapshot(std::string_view file_name,
                                                              FileSet set) noexcept;

/// Says how much has certainly been synced; has a file of its own, with two places written in turn.
struct Mark {
  static constexpr std::size_t kBytes = 56;
  static constexpr std::size_t kPlaces = 2;
  static constexpr std::uint64_t kStride = 4096;               // so that no sector has both
  static constexpr std::uint64_t kMagic = 0x4B524D4E4C4E5544;  // "DUNLNMRK"
  static constexpr std::uint32_t kVersion = 3;

  std::uint64_t revision = 0;
  std::uint64_t first = 1;       // the lowest number that was not trimmed
  std::uint64_t synced = 1;      // all records below this number were synced
  FileSet set = FileSet::plain;  // the files that count
  std::uint64_t salt = 0;        // goes into the records' checks; 0: an older version made the log

  void write(std::span<std::byte, kBytes> to, std::uint64_t name_sum) const noexcept;
  /// Reads marks of versions 1 and 2, too.
  static std::optional<Mark> read(std::span<const std::byte, kBytes> from,
                                  std::uint64_t name_sum) noexcept;
  /// The version of a mark that only a newer program can read; none for any other mark.
  static std::optional<std::uint32_t> newer_version(
      std::span<const std::byte, kBytes> from) noexcept;
};

}  // namespace dunlin::log

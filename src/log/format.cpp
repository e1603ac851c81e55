#include "log/format.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "log/checksum.hpp"

namespace dunlin::log {
namespace {

template <class Number>
void put(std::byte* to, std::size_t offset, Number number) noexcept {
  std::memcpy(to + offset, &number, sizeof number);
}
template <class Number>
Number get(const std::byte* from, std::size_t offset) noexcept {
  Number number{};
  std::memcpy(&number, from + offset, sizeof number);
  return number;
}

constexpr std::size_t kNameOffset = 32;
constexpr std::size_t kSumOffset = SegmentHeader::kBytes - 8;
static_assert(kNameOffset + kMaxNameBytes == kSumOffset);

constexpr std::size_t kDigits = 16;
constexpr std::uint64_t kMarkMagicOfVersion1 = 0x4B52414D4E4E5544;  // "DUNNMARK"
constexpr std::size_t kSummedBytesBeforeSalt = 40;                  // in marks of versions 1 and 2

constexpr std::string_view segment_suffix(FileSet set) noexcept {
  return set == FileSet::plain ? ".log" : ".2.log";
}
constexpr std::string_view snapshot_suffix(FileSet set) noexcept {
  return set == FileSet::plain ? ".snap" : ".2.snap";
}

std::string file_name(std::uint64_t number, std::string_view suffix) {
  std::array<char, kDigits> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + kDigits, number, 16).ptr;
  const std::string text(digits.data(), end);
  return std::string(kDigits - text.size(), '0') + text + std::string(suffix);
}

std::optional<std::uint64_t> number_of(std::string_view name, std::string_view suffix) noexcept {
  if (name.size() != kDigits + suffix.size() || !name.ends_with(suffix)) return std::nullopt;
  std::uint64_t number = 0;
  const char* end = name.data() + kDigits;
  const auto [stopped, error] = std::from_chars(name.data(), end, number, 16);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return number;
}

}  // namespace

void SegmentHeader::write(std::span<std::byte, kBytes> to) const noexcept {
  std::ranges::fill(to, std::byte{});
  put(to.data(), 0, kMagic);
  put(to.data(), 8, kVersion);
  put(to.data(), 12, static_cast<std::uint32_t>(kBytes));
  put(to.data(), 16, first);
  put(to.data(), 24, chain);
  std::memcpy(to.data() + kNameOffset, name.data(), std::min(name.size(), kMaxNameBytes));
  put(to.data(), kSumOffset, checksum(to.first(kSumOffset)));
}

std::optional<SegmentHeader> SegmentHeader::read(std::span<const std::byte, kBytes> from,
                                                 std::string& fault) {
  const std::byte* at = from.data();
  const bool whole = get<std::uint64_t>(at, kSumOffset) == checksum(from.first(kSumOffset));
  if (get<std::uint64_t>(at, 0) != kMagic) {
    fault = "does not begin like a segment of a log: it is damaged, or another program's";
    return std::nullopt;
  }
  if (!whole) {
    // A newer version may have its checksum elsewhere.
    const auto version = get<std::uint32_t>(at, 8);
    fault = version > kVersion && version < 1'000
                ? "is of version " + std::to_string(version) + "; this program reads version " +
                      std::to_string(kVersion) + ": use a newer one (or the file is damaged)"
                : "has a damaged header (offset 0)";
    return std::nullopt;
  }
  if (get<std::uint32_t>(at, 8) != kVersion) {
    fault = "is of version " + std::to_string(get<std::uint32_t>(at, 8)) +
            "; this program reads version " + std::to_string(kVersion) + ": use a newer one";
    return std::nullopt;
  }
  SegmentHeader header{
      .first = get<std::uint64_t>(at, 16), .chain = get<std::uint64_t>(at, 24), .name = {}};
  const char* name = reinterpret_cast<const char*>(at + kNameOffset);
  header.name.assign(name, std::find(name, name + kMaxNameBytes, '\0'));
  return header;
}

std::string segment_name(std::uint64_t first, FileSet set) {
  return file_name(first, segment_suffix(set));
}

std::optional<std::uint64_t> first_of_segment(std::string_view file_name, FileSet set) noexcept {
  return number_of(file_name, segment_suffix(set));
}

bool is_segment(std::string_view file_name) noexcept {
  return first_of_segment(file_name, FileSet::plain) || first_of_segment(file_name, FileSet::other);
}

std::string snapshot_name(std::uint64_t number, FileSet set) {
  return file_name(number, snapshot_suffix(set));
}

std::optional<std::uint64_t> number_of_snapshot(std::string_view file_name, FileSet set) noexcept {
  return number_of(file_name, snapshot_suffix(set));
}

void SnapshotHeader::write(std::span<std::byte, kBytes> to, std::uint64_t name_sum) const noexcept {
  put(to.data(), 0, kMagic);
  put(to.data(), 8, kVersion);
  put(to.data(), 12, static_cast<std::uint32_t>(kBytes));
  put(to.data(), 16, number);
  put(to.data(), 24, from);
  put(to.data(), 32, chain);
  put(to.data(), 40, bytes);
  put(to.data(), 48, sum);
  put(to.data(), 56, checksum(to.first(56), name_sum));
}

std::optional<SnapshotHeader> SnapshotHeader::read(std::span<const std::byte, kBytes> from,
                                                   std::uint64_t name_sum) noexcept {
  const std::byte* at = from.data();
  if (get<std::uint64_t>(at, 0) != kMagic || get<std::uint32_t>(at, 8) != kVersion ||
      get<std::uint64_t>(at, 56) != checksum(from.first(56), name_sum))
    return std::nullopt;
  return SnapshotHeader{.number = get<std::uint64_t>(at, 16),
                        .from = get<std::uint64_t>(at, 24),
                        .chain = get<std::uint64_t>(at, 32),
                        .bytes = get<std::uint64_t>(at, 40),
                        .sum = get<std::uint64_t>(at, 48)};
}

std::uint64_t RecordHeader::chain_over(std::span<const std::byte> padded) const noexcept {
  std::array<std::byte, kBytes> header{};
  write(header.data());
  return checksum(padded, checksum(std::span(header).first(24)));
}

std::uint32_t RecordHeader::check_over(std::uint64_t seed) const noexcept {
  std::array<std::byte, kBytes> header{};
  write(header.data());
  return static_cast<std::uint32_t>(checksum(std::span(header).first(36), seed));
}

void RecordHeader::write(std::byte* to) const noexcept { std::memcpy(to, this, kBytes); }

RecordHeader RecordHeader::read(const std::byte* from) noexcept {
  RecordHeader header;
  std::memcpy(&header, from, kBytes);
  return header;
}

void Mark::write(std::span<std::byte, kBytes> to, std::uint64_t name_sum) const noexcept {
  put(to.data(), 0, kMagic);
  put(to.data(), 8, kVersion);
  put(to.data(), 12, static_cast<std::uint32_t>(set));
  put(to.data(), 16, revision);
  put(to.data(), 24, first);
  put(to.data(), 32, synced);
  put(to.data(), 40, salt);
  put(to.data(), kBytes - 8, checksum(to.first(kBytes - 8), name_sum));
}

std::optional<Mark> Mark::read(std::span<const std::byte, kBytes> from,
                               std::uint64_t name_sum) noexcept {
  const std::byte* at = from.data();
  const auto magic = get<std::uint64_t>(at, 0);
  const auto version = get<std::uint32_t>(at, 8);
  const bool salted = magic == kMagic && version == kVersion;
  const std::size_t summed = salted ? kBytes - 8 : kSummedBytesBeforeSalt;
  if (get<std::uint64_t>(at, summed) != checksum(from.first(summed), name_sum)) return std::nullopt;
  if (magic == kMarkMagicOfVersion1)
    return Mark{.revision = get<std::uint64_t>(at, 8),
                .first = get<std::uint64_t>(at, 16),
                .synced = get<std::uint64_t>(at, 24)};
  const auto set = get<std::uint32_t>(at, 12);
  if (magic != kMagic || version < 2 || version > kVersion || set > 1) return std::nullopt;
  return Mark{.revision = get<std::uint64_t>(at, 16),
              .first = get<std::uint64_t>(at, 24),
              .synced = get<std::uint64_t>(at, 32),
              .set = static_cast<FileSet>(set),
              .salt = salted ? get<std::uint64_t>(at, 40) : 0};
}

std::optional<std::uint32_t> Mark::newer_version(std::span<const std::byte, kBytes> from) noexcept {
  const auto version = get<std::uint32_t>(from.data(), 8);
  const bool newer = get<std::uint64_t>(from.data(), 0) == kMagic && version > kVersion;
  return newer && version < 1'000 ? std::optional(version) : std::nullopt;
}

}  // namespace dunlin::log

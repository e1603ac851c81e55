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

constexpr std::string_view kSuffix = ".log";
constexpr std::size_t kDigits = 16;

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

std::string segment_name(std::uint64_t first) {
  std::array<char, kDigits> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + kDigits, first, 16).ptr;
  const std::string number(digits.data(), end);
  return std::string(kDigits - number.size(), '0') + number + std::string(kSuffix);
}

std::optional<std::uint64_t> first_of_segment(std::string_view file_name) noexcept {
  if (file_name.size() != kDigits + kSuffix.size() || !file_name.ends_with(kSuffix))
    return std::nullopt;
  std::uint64_t first = 0;
  const char* end = file_name.data() + kDigits;
  const auto [stopped, error] = std::from_chars(file_name.data(), end, first, 16);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return first;
}

std::uint64_t RecordHeader::chain_over(std::span<const std::byte> padded) const noexcept {
  std::array<std::byte, kBytes> header{};
  write(header.data());
  return checksum(padded, checksum(std::span(header).first(24)));
}

std::uint32_t RecordHeader::check_over(std::uint64_t name_sum) const noexcept {
  std::array<std::byte, kBytes> header{};
  write(header.data());
  return static_cast<std::uint32_t>(checksum(std::span(header).first(36), name_sum));
}

void RecordHeader::write(std::byte* to) const noexcept { std::memcpy(to, this, kBytes); }

RecordHeader RecordHeader::read(const std::byte* from) noexcept {
  RecordHeader header;
  std::memcpy(&header, from, kBytes);
  return header;
}

void Mark::write(std::span<std::byte, kBytes> to, std::uint64_t name_sum) const noexcept {
  std::ranges::fill(to, std::byte{});
  put(to.data(), 0, kMagic);
  put(to.data(), 8, revision);
  put(to.data(), 16, first);
  put(to.data(), 24, synced);
  put(to.data(), kBytes - 8, checksum(to.first(kBytes - 8), name_sum));
}

std::optional<Mark> Mark::read(std::span<const std::byte, kBytes> from,
                               std::uint64_t name_sum) noexcept {
  if (get<std::uint64_t>(from.data(), 0) != kMagic ||
      get<std::uint64_t>(from.data(), kBytes - 8) != checksum(from.first(kBytes - 8), name_sum))
    return std::nullopt;
  return Mark{.revision = get<std::uint64_t>(from.data(), 8),
              .first = get<std::uint64_t>(from.data(), 16),
              .synced = get<std::uint64_t>(from.data(), 24)};
}

}  // namespace dunlin::log

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <dunlin/limits.hpp>

/// The header of every segment in /dev/shm, as docs/formats/shm-segment.md describes it. It is
/// written once, before anyone else can see the segment, and read only by copy, never in place.
namespace dunlin::segments {

inline constexpr std::array<char, 8> kSegmentMagic = {'D', 'U', 'N', 'L', 'I', 'N', 'S', 'G'};
inline constexpr std::uint32_t kSegmentVersion = 1;
inline constexpr std::size_t kSegmentPageBytes = 4096;

enum class SegmentKind : std::uint32_t {
  base = 1,      // a member's doorbell, heartbeat and message rings
  region = 2,    // what Fabric::allocate() made
  published = 3  // what Fabric::publish() made, for observers only
};

struct SegmentHeader {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t payload_offset;  // header and layout text, rounded up to whole pages
  SegmentKind kind;
  std::uint32_t owner_pid;
  std::uint32_t owner_uid;
  std::uint32_t owner_rank;
  std::uint32_t members;
  std::uint32_t layout_text_bytes;
  std::uint64_t incarnation;  // random; equal in all segments of one member
  std::uint64_t epoch;
  std::uint64_t layout_hash;
  std::uint64_t payload_bytes;
  std::array<char, 48> group;  // names end with a zero byte
  std::array<char, 48> member;
  std::array<char, 72> region;
  std::array<char, 8> fabric;         // "shm", "ofi"
  std::array<std::byte, 8> reserved;  // zero
};

static_assert(sizeof(SegmentHeader) == 256);
static_assert(offsetof(SegmentHeader, version) == 8);
static_assert(offsetof(SegmentHeader, payload_offset) == 12);
static_assert(offsetof(SegmentHeader, kind) == 16);
static_assert(offsetof(SegmentHeader, owner_pid) == 20);
static_assert(offsetof(SegmentHeader, owner_uid) == 24);
static_assert(offsetof(SegmentHeader, owner_rank) == 28);
static_assert(offsetof(SegmentHeader, members) == 32);
static_assert(offsetof(SegmentHeader, layout_text_bytes) == 36);
static_assert(offsetof(SegmentHeader, incarnation) == 40);
static_assert(offsetof(SegmentHeader, epoch) == 48);
static_assert(offsetof(SegmentHeader, layout_hash) == 56);
static_assert(offsetof(SegmentHeader, payload_bytes) == 64);
static_assert(offsetof(SegmentHeader, group) == 72);
static_assert(offsetof(SegmentHeader, member) == 120);
static_assert(offsetof(SegmentHeader, region) == 168);
static_assert(offsetof(SegmentHeader, fabric) == 240);
static_assert(kMaxGroupNameBytes < sizeof(SegmentHeader::group));
static_assert(kMaxMemberNameBytes < sizeof(SegmentHeader::member));
static_assert(kMaxRegionNameBytes < sizeof(SegmentHeader::region));

/// Where the payload starts behind a layout text of this size.
[[nodiscard]] constexpr std::uint32_t payload_offset(std::size_t layout_text_bytes) noexcept {
  const std::size_t bytes = sizeof(SegmentHeader) + layout_text_bytes;
  return static_cast<std::uint32_t>(round_up(bytes, kSegmentPageBytes));
}

/// What is wrong with a header that came from somewhere else, given its file's size; empty if
/// nothing is.
[[nodiscard]] std::string fault_of(const SegmentHeader& header, std::uint64_t file_bytes);

}  // namespace dunlin::segments

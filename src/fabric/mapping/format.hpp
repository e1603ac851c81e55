#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <dunlin/limits.hpp>

/// The header of every segment in /dev/shm, as docs/formats/shm-segment.md describes it. It is
/// written once, before any other process can see the segment, and read only by copy, never in
/// place.
namespace dunlin::mapping {

inline constexpr std::array<char, 8> kMappingMagic = {'D', 'U', 'N', 'L', 'I', 'N', 'S', 'G'};
inline constexpr std::uint32_t kMappingVersion = 1;
inline constexpr std::size_t kMappingPageBytes = 4096;

enum class MappingKind : std::uint32_t {
  base = 1,       // a member's doorbell, heartbeat and message rings
  region = 2,     // memory of Fabric::allocate()
  published = 3,  // memory of Fabric::publish(), for observers only
  ring = 4        // messages of, or to, a member that came later
};

struct MappingHeader {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t payload_offset;  // end of header and layout text, rounded up to whole pages
  MappingKind kind;
  std::uint32_t owner_pid;
  std::uint32_t owner_uid;
  std::uint32_t owner_rank;
  std::uint32_t members;
  std::uint32_t layout_text_bytes;
  std::uint64_t incarnation;  // random; equal in all segments of one member
  std::uint64_t generation;
  std::uint64_t layout_hash;
  std::uint64_t payload_bytes;
  std::array<char, 48> group;  // names end with a zero byte
  std::array<char, 48> member;
  std::array<char, 72> region;
  std::array<char, 8> fabric;         // "shm", "ofi"
  std::array<std::byte, 8> reserved;  // zero
};

static_assert(sizeof(MappingHeader) == 256);
static_assert(offsetof(MappingHeader, version) == 8);
static_assert(offsetof(MappingHeader, payload_offset) == 12);
static_assert(offsetof(MappingHeader, kind) == 16);
static_assert(offsetof(MappingHeader, owner_pid) == 20);
static_assert(offsetof(MappingHeader, owner_uid) == 24);
static_assert(offsetof(MappingHeader, owner_rank) == 28);
static_assert(offsetof(MappingHeader, members) == 32);
static_assert(offsetof(MappingHeader, layout_text_bytes) == 36);
static_assert(offsetof(MappingHeader, incarnation) == 40);
static_assert(offsetof(MappingHeader, generation) == 48);
static_assert(offsetof(MappingHeader, layout_hash) == 56);
static_assert(offsetof(MappingHeader, payload_bytes) == 64);
static_assert(offsetof(MappingHeader, group) == 72);
static_assert(offsetof(MappingHeader, member) == 120);
static_assert(offsetof(MappingHeader, region) == 168);
static_assert(offsetof(MappingHeader, fabric) == 240);
static_assert(kMaxGroupNameBytes < sizeof(MappingHeader::group));
static_assert(kMaxMemberNameBytes < sizeof(MappingHeader::member));
static_assert(kMaxRegionNameBytes < sizeof(MappingHeader::region));

/// Where the payload starts behind a layout text of this size.
[[nodiscard]] constexpr std::uint32_t payload_offset(std::size_t layout_text_bytes) noexcept {
  const std::size_t bytes = sizeof(MappingHeader) + layout_text_bytes;
  return static_cast<std::uint32_t>(round_up(bytes, kMappingPageBytes));
}

/// The text says what is wrong with another process's header, given its file's size; empty if it is
/// valid.
[[nodiscard]] std::string fault_of(const MappingHeader& header, std::uint64_t file_bytes);

}  // namespace dunlin::mapping

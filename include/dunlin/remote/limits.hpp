#pragma once

#include <cstdint>

#include <dunlin/limits.hpp>

/// The limits of `remote` and `segment`; those of the other layers are in <dunlin/limits.hpp>.
namespace dunlin {

// remote
inline constexpr std::uint32_t kMaxLockNodes = 1024;  // acquisitions of one Locks under way or held
inline constexpr std::uint32_t kLockChannel = kMaxChannels - 2;  // of Locks, unless told otherwise

// segment
inline constexpr std::uint32_t kSegmentChannel = kMaxChannels - 3;  // of a SegmentSpace, likewise
inline constexpr std::size_t kMaxSpaceNameBytes = 40;               // [A-Za-z0-9._/-]
inline constexpr std::size_t kMaxSegmentNameBytes = 64;             // printable ASCII
inline constexpr std::uint32_t kMaxSegments = std::uint32_t{1} << 20;  // of one member, at a time

static_assert(kMaxLockNodes <= 4096, "a lock word has 12 bits for the node");
static_assert(kMaxMembers < 4096, "a lock word has 12 bits for the member, and a key, too");
static_assert(kMaxSpaceNameBytes + 8 <= kMaxRegionNameBytes, "for \"segment:\"");
static_assert(kMaxSegmentNameBytes + 32 <= kMaxMessageBytes, "a name travels in one message");

}  // namespace dunlin

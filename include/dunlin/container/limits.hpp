#pragma once

#include <cstdint>

#include <dunlin/limits.hpp>

/// The limits of `container`; those of the other layers are in <dunlin/limits.hpp>.
namespace dunlin {

inline constexpr std::uint32_t kContainerChannel = kMaxChannels - 4;  // messages of a Containers
inline constexpr std::size_t kMaxContainerNameBytes = 40;             // printable ASCII
inline constexpr std::uint32_t kMaxElementBytes = 4096;               // key and value, or element
inline constexpr std::uint32_t kLengthBytes = 2;                 // before a value of varying size
inline constexpr std::uint32_t kMaxPooledValueBytes = 1U << 20;  // a value in a pool
inline constexpr std::uint32_t kReferenceBytes = 20;             // to a pooled value, in a slot
inline constexpr std::uint32_t kMaxSlots = std::uint32_t{1} << 31;  // in one member's part
inline constexpr std::uint32_t kProbeBytes = 512;               // most that a search reads at once
inline constexpr std::uint32_t kMaxMapTables = 16;              // in a part that grows
inline constexpr std::uint32_t kTableWindow = 16;               // slots in a key's window
inline constexpr std::uint32_t kPackedTableWindow = 32;         // the same, of packed slots
inline constexpr std::uint32_t kLastTableWindows = 16;          // of a key, in the last table
inline constexpr std::uint32_t kPackedKeyBytes = 8;             // in a packed slot
inline constexpr std::uint32_t kMaxPackedValueBytes = 4;        // in a packed slot
inline constexpr std::uint32_t kScanBytes = 65'536;             // most that a scan reads at once
inline constexpr std::uint32_t kScanValueBytes = 1U << 20;      // as kScanBytes, pooled values
inline constexpr std::uint32_t kMaxBatchElements = 65'535;      // in a batch of an Aggregator
inline constexpr std::uint32_t kMaxBatchesUnderWay = 64;        // to one target
inline constexpr std::uint32_t kMaxCollectiveBytes = 1U << 20;  // that a Collectives moves at once
inline constexpr std::uint32_t kLeastAhead = 4;  // calls that a member can be ahead of another,
inline constexpr std::uint32_t kMostAhead = 64;  // within
inline constexpr std::uint32_t kAheadBytes = 65'536;  // of memory for each tie of the tree
inline constexpr std::uint32_t kMessageHeader = 32;   // a request, reply or claim has
inline constexpr std::uint32_t kMessageContentBytes = kMaxMessageBytes - kMessageHeader;
inline constexpr std::uint32_t kMaxFunctionBytes = 1U << 28;  // arguments, or result, of a call
inline constexpr std::uint32_t kMaxFunctionBuffers = 64;      // of one member at another

static_assert(kMaxContainerNameBytes + 10 <= kMaxRegionNameBytes, "for \"container:\"");
static_assert(kMaxContainerNameBytes + 23 <= kMaxRegionNameBytes,
              "for \"collectives:\", a blank, and a hash of 32 bits in decimal");
static_assert(kMaxElementBytes < 0xffff, "a length has kLengthBytes bytes; 0xffff is none");

}  // namespace dunlin

#pragma once

#include <cstddef>
#include <cstdint>

/// Every limit of the library in one place. Going over one is an Error that quotes it by name,
/// never a truncation.
namespace dunlin {

inline constexpr std::size_t kCacheLineBytes = 64;
inline constexpr std::size_t kWordBytes = 8;

/// The least multiple of `unit` that has room for so many bytes.
[[nodiscard]] constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}

// fabric
inline constexpr std::uint32_t kMaxMembers = 4095;  // in a group on a simulated fabric
inline constexpr std::uint32_t kMaxRanks = 4096;    // one fabric has over its life
inline constexpr std::size_t kAdmissionKeyBytes = 32;
inline constexpr std::size_t kMaxEndpointBytes = 1024;         // where a member is reached
inline constexpr std::uint32_t kMaxHostMembers = 256;          // in a shm group: one socket a pair
inline constexpr std::uint32_t kMaxStreamMembers = 256;        // in a group on streams: one a pair
inline constexpr std::size_t kMaxGroupNameBytes = 40;          // [A-Za-z0-9._-]
inline constexpr std::size_t kMaxJoinableGroupNameBytes = 22;  // a group that others may join
inline constexpr std::size_t kMaxMemberNameBytes = 40;         // [A-Za-z0-9._-]
inline constexpr std::size_t kMaxRegionNameBytes = 64;         // printable ASCII
inline constexpr std::size_t kMaxLayoutTextBytes = 16384;      // describes a region
inline constexpr std::uint32_t kMaxRegions = 2048;             // in one fabric, at a time
inline constexpr std::uint32_t kMaxRetiredRegions = 2048;      // released, and still held by a peer
inline constexpr std::size_t kMaxRegionBytes = std::size_t{1} << 36;
inline constexpr std::size_t kMaxMessageBytes = 256;    // one active message
inline constexpr std::size_t kMessageRingBytes = 4096;  // one pair and direction
inline constexpr std::uint32_t kMaxChannels = 64;       // for active messages

// table
inline constexpr std::size_t kMaxTableNameBytes = 58;  // printable ASCII
inline constexpr std::size_t kMaxColumns = 32;
inline constexpr std::size_t kMaxRowBytes = std::size_t{1} << 24;
inline constexpr std::size_t kMaxEntryBytes = kCacheLineBytes;  // an entry in a Cell
inline constexpr std::size_t kMaxPredicates = 4096;             // in one table, at a time
inline constexpr std::size_t kMaxPublishedPredicates = 64;      // that `dunlin top` can see
inline constexpr std::size_t kMaxPredicateNameBytes = 64;       // longer ones are shown shortened

// group
inline constexpr std::uint32_t kMaxViewMembers = 256;         // in one view
inline constexpr std::size_t kMaxSubgroups = 512;             // in one group, at a time
inline constexpr std::size_t kMaxSubgroupNameBytes = 40;      // [A-Za-z0-9._-]
inline constexpr std::size_t kMaxFurtherGroupNameBytes = 12;  // [A-Za-z0-9._-]
inline constexpr std::size_t kMaxSubgroupTextBytes = 256;     // a subgroup's options, and its label
inline constexpr std::size_t kMaxJoinersAtOnce = 16;  // in one view change; others come next
inline constexpr std::uint32_t kGroupChannel = kMaxChannels - 1;     // for a group's own messages
inline constexpr std::size_t kMaxStateBytes = std::size_t{1} << 30;  // a subgroup's, in transfer

// multicast
inline constexpr std::size_t kMinRingBytes = 1024;  // a sender's ring
inline constexpr std::size_t kMaxRingBytes = std::size_t{1} << 30;
inline constexpr std::size_t kMaxCastBytes = std::size_t{1} << 30;  // one message
inline constexpr std::size_t kMaxBatchMessages = 256;               // delivered by one upcall

// remote
inline constexpr std::uint32_t kMaxLockNodes = 1024;             // one Locks has, under way or held
inline constexpr std::uint32_t kLockChannel = kMaxChannels - 2;  // for Locks, unless set otherwise

// segment
inline constexpr std::uint32_t kSegmentChannel = kMaxChannels - 3;     // for a SegmentSpace
inline constexpr std::size_t kMaxSpaceNameBytes = 40;                  // printable ASCII
inline constexpr std::size_t kMaxSegmentNameBytes = 64;                // printable ASCII
inline constexpr std::uint32_t kMaxSegments = std::uint32_t{1} << 20;  // one member's, at a time
inline constexpr std::uint32_t kMaxKeptVersions = 1024;  // a segment has under Coherence::delta

// daemon
inline constexpr std::uint32_t kMaxAttachedProcesses = 1024;    // at one daemon, at a time
inline constexpr std::uint32_t kMaxAttachedOperations = 256;    // under way, for one process
inline constexpr std::uint32_t kMaxClientLocks = 768;           // held or wanted by all clients
inline constexpr std::size_t kMinAttachedTransferBytes = 4096;  // one get or put
inline constexpr std::size_t kMaxAttachedTransferBytes = std::size_t{1} << 24;

// store
inline constexpr std::size_t kMaxStoreKeyBytes = 255;
inline constexpr std::size_t kMaxStoreValueBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxStoreNameBytes = 34;     // [A-Za-z0-9._-]
inline constexpr std::size_t kMaxTransactionWrites = 16;  // keys changed by one transaction
inline constexpr std::size_t kMaxTransactionReads = 64;   // gets in one transaction
inline constexpr std::size_t kMinStoreBytes = std::size_t{1} << 20;  // at a member that holds keys

static_assert(kMaxMembers <= kMaxRanks);
static_assert(kMaxHostMembers <= kMaxMembers);
static_assert(kMaxStreamMembers <= kMaxMembers);
static_assert(kCacheLineBytes % kWordBytes == 0);
static_assert(kMessageRingBytes % kCacheLineBytes == 0);
static_assert(kMaxMessageBytes * 4 <= kMessageRingBytes, "a ring holds several of the largest");
static_assert(kMaxPublishedPredicates <= kMaxPredicates);
static_assert(3 * kMaxSubgroups <= kMaxRegions, "a view of a subgroup takes two regions");
static_assert(kMaxFurtherGroupNameBytes + 1 + kMaxSubgroupNameBytes + 5 <= kMaxTableNameBytes,
              "for \"cast:\" and \"ring:\"");
static_assert(kMaxHostMembers <= kMaxViewMembers && kMaxStreamMembers <= kMaxViewMembers,
              "the members of a fabric of processes fit into one view");
static_assert(kMaxRingBytes <= kMaxRegionBytes, "the rings of some senders fit into a region");
static_assert(kMaxClientLocks < kMaxLockNodes, "puts and releases of a daemon lock, too");
static_assert(kMaxLockNodes <= 4096, "a lock word has 12 bits for the node");
static_assert(kMaxMembers < 4096, "a lock word has 12 bits for the member, and a key, too");
static_assert(kMaxSpaceNameBytes + 8 <= kMaxRegionNameBytes, "for \"segment:\"");
static_assert(kMaxSegmentNameBytes + 64 <= kMaxMessageBytes, "a name travels in one message");
static_assert(kMaxRingBytes / 4 < std::size_t{1} << 31, "a record's length has 31 bits");

}  // namespace dunlin

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <dunlin/fabric.hpp>
#include <dunlin/limits.hpp>

/// The layouts of a store's memory: docs/formats/store.md.
namespace dunlin::store {

// --- the index: a header, the first main headers, and then the directory of the later ones -------

inline constexpr std::uint64_t kMagic = 0x39726f7453'6e6c44;  // "DlnStor9"
inline constexpr std::uint64_t kIndexHeaderBytes = 192;
inline constexpr std::uint64_t kMainHeadersAt = 8;  // how many main headers there are now
inline constexpr std::uint64_t kRanksAt = 16;       // how many ranks have redo records here
inline constexpr std::uint64_t kBaseAt = 24;        // how many main headers follow this header
inline constexpr std::uint64_t kKeysAt = 64;        // keys, changed by fetch_add
inline constexpr std::uint64_t kValueBytesAt = 72;  // likewise
/// Of each member: up to which version of the slot map it acts on, plus 1.
inline constexpr std::uint64_t kMapAt = 80;
inline constexpr std::uint64_t kClockAt = 128;  // the home's clock, as it was a moment ago
inline constexpr std::uint64_t kGenerationAt =
    136;  // of the members that the home has been told of
/// Of a store with eviction: where the hands of its pools are, sweep << 32 | slab.
inline constexpr std::uint64_t kHandsAt = 144;

inline constexpr std::size_t kSlots = 8;  // the associativity
inline constexpr std::size_t kSlotBytes = 16;
/// Of the slots of main headers: for so many keys an index is laid out.
inline constexpr std::uint64_t kOccupancyPercent = 75;

struct Slot {
  std::uint64_t hash = 0;  // of the key
  std::uint64_t word = 0;  // 0: unused
};
struct Bucket {
  std::array<Slot, kSlots> slots;
  std::uint64_t link = 0;  // an indirect header's word, or 0
};
/// A bucket with the lock of its chain.
struct MainHeader {
  Bucket bucket;
  std::uint64_t depth = 0;    // how often its positions have been halved
  std::uint64_t version = 0;  // of the chain's last change
  std::uint64_t lock = 0;     // 0, or the operation that changes the chain
};
static_assert(sizeof(Slot) == kSlotBytes);
static_assert(sizeof(Bucket) == 136);
static_assert(sizeof(MainHeader) == 160);
static_assert(offsetof(Bucket, link) == 128);
inline constexpr std::uint64_t kLinkAt = offsetof(Bucket, link);
inline constexpr std::uint64_t kDepthAt = offsetof(MainHeader, depth);
inline constexpr std::uint64_t kVersionAt = offsetof(MainHeader, version);
inline constexpr std::uint64_t kLockAt = offsetof(MainHeader, lock);
static_assert(kVersionAt % 16 == 0 && kLockAt == kVersionAt + 8,
              "one write, in one cache line, raises the version and then unlocks");
static_assert(sizeof(MainHeader) % 32 == 0 && kIndexHeaderBytes % kCacheLineBytes == 0);
static_assert(kDepthAt / 32 == kLockAt / 32,
              "in one cache line: who reads a version reads no older depth (FAB-F2, STO-7)");

[[nodiscard]] constexpr std::uint64_t main_header_at(std::uint64_t number) noexcept {
  return kIndexHeaderBytes + number * sizeof(MainHeader);
}
/// Behind the first main headers: the offset of each extent in the small pool's region.
[[nodiscard]] constexpr std::uint64_t extent_word_at(std::uint64_t base,
                                                     std::uint64_t extent) noexcept {
  return main_header_at(base) + extent * kWordBytes;
}

/// A lock word: which member has the lock, and which of its operations.
namespace lock_word {
[[nodiscard]] constexpr std::uint64_t make(Rank owner, std::uint64_t serial) noexcept {
  return serial << 12 | (owner + 1);
}
[[nodiscard]] constexpr Rank owner_of(std::uint64_t word) noexcept {
  return static_cast<Rank>((word & 0xfff) - 1);
}
[[nodiscard]] constexpr std::uint64_t serial_of(std::uint64_t word) noexcept { return word >> 12; }
static_assert(make(2, 5) == 0x5003);
}  // namespace lock_word

// --- slots ---------------------------------------------------------------------------------------

/// A place in the memory for entries: which of the two pools, and the block in it.
struct Location {
  bool large = false;
  std::uint32_t size_class = 0;
  std::uint64_t offset = 0;  // of the pool's region
  friend bool operator==(const Location&, const Location&) = default;
};

enum class SlotType : std::uint8_t { unused, entry, header };

/// The second word of a slot, and a link:
///   63..62 type | 61..48 incarnation, lossy | 47 large | 46..42 size class | 41..12 offset / 64 |
///   11..0  cache lines of the entry when the slot was written
namespace slot_word {
inline constexpr std::uint64_t kMostLines = 0xfff;
inline constexpr std::uint64_t kMostOffset = (std::uint64_t{1} << 30) * kCacheLineBytes;

[[nodiscard]] constexpr std::uint64_t lossy(std::uint64_t incarnation) noexcept {
  return (incarnation ^ (incarnation >> 48) * 0x5bd) & 0x3fff;
}
/// Of an entry of so many bytes, at most those that a word can say.
[[nodiscard]] constexpr std::uint64_t lines_of(std::size_t bytes) noexcept {
  const std::uint64_t lines = (bytes + kCacheLineBytes - 1) / kCacheLineBytes;
  return lines < kMostLines ? lines : kMostLines;
}
[[nodiscard]] constexpr std::uint64_t make(SlotType type, std::uint64_t incarnation,
                                           const Location& location, std::size_t bytes) noexcept {
  return std::uint64_t{static_cast<std::uint8_t>(type)} << 62 | lossy(incarnation) << 48 |
         std::uint64_t{location.large ? 1U : 0U} << 47 | std::uint64_t{location.size_class} << 42 |
         location.offset / kCacheLineBytes << 12 | lines_of(bytes);
}
[[nodiscard]] constexpr SlotType type_of(std::uint64_t word) noexcept {
  return static_cast<SlotType>(word >> 62);
}
[[nodiscard]] constexpr std::uint64_t lossy_of(std::uint64_t word) noexcept {
  return word >> 48 & 0x3fff;
}
[[nodiscard]] constexpr Location location_of(std::uint64_t word) noexcept {
  return {(word >> 47 & 1) != 0, static_cast<std::uint32_t>(word >> 42 & 31),
          (word >> 12 & 0x3fffffff) * kCacheLineBytes};
}
[[nodiscard]] constexpr std::size_t bytes_of(std::uint64_t word) noexcept {
  return (word & kMostLines) * kCacheLineBytes;
}
static_assert(make(SlotType::entry, 0x3000000000007, {false, 1, 704}, 112) == 0x513004000000b002 &&
                  make(SlotType::header, 0, {false, 3, 4288}, 136) == 0x80000c0000043003,
              "docs/formats/store.md");
}  // namespace slot_word

// --- entries -------------------------------------------------------------------------------------

enum class EntryState : std::uint8_t { unused, live, moved, dead };

/// The beginning of an entry; key and value follow it.
struct EntryHead {
  std::uint64_t guard = 0;      // incarnation << 4 | state
  std::uint64_t checksum = 0;   // of what follows, at this place
  std::uint64_t version = 0;    //
  std::uint64_t expiry_ns = 0;  // by the home's clock; 0: never
  std::uint32_t value_bytes = 0;
  std::uint32_t key_bytes = 0;
};
inline constexpr std::size_t kEntryHeadBytes = sizeof(EntryHead);
static_assert(kEntryHeadBytes == 40);
static_assert(offsetof(EntryHead, checksum) == 8 && offsetof(EntryHead, version) == 16 &&
              offsetof(EntryHead, expiry_ns) == 24 && offsetof(EntryHead, value_bytes) == 32 &&
              offsetof(EntryHead, key_bytes) == 36);

[[nodiscard]] constexpr std::uint64_t guard_of(std::uint64_t incarnation,
                                               EntryState state) noexcept {
  return incarnation << 4 | static_cast<std::uint64_t>(state);
}
[[nodiscard]] constexpr EntryState state_of(std::uint64_t guard) noexcept {
  return static_cast<EntryState>(guard & 15);
}
[[nodiscard]] constexpr std::uint64_t incarnation_of(std::uint64_t guard) noexcept {
  return guard >> 4;
}
static_assert(guard_of(0x3000000000007, EntryState::live) == 0x0030000000000071,
              "docs/formats/store.md");
/// No two entries of a store ever have the same.
[[nodiscard]] constexpr std::uint64_t make_incarnation(Rank by, std::uint64_t count) noexcept {
  return std::uint64_t{by} << 48 | count;
}

[[nodiscard]] constexpr std::size_t entry_bytes(std::size_t key_bytes,
                                                std::size_t value_bytes) noexcept {
  return kEntryHeadBytes + key_bytes + value_bytes;
}
[[nodiscard]] inline EntryHead head_of(const std::byte* entry) noexcept {
  EntryHead head;
  std::memcpy(&head, entry, sizeof head);
  return head;
}
/// Whether the lengths are ones that a store writes.
[[nodiscard]] constexpr bool is_sound(const EntryHead& head) noexcept {
  return head.key_bytes <= kMaxStoreKeyBytes && head.value_bytes <= kMaxStoreValueBytes;
}
[[nodiscard]] constexpr std::size_t entry_bytes(const EntryHead& head) noexcept {
  return entry_bytes(head.key_bytes, head.value_bytes);
}
/// Of the image of an entry at a place: all but state and checksum, and the place (STO-3). The
/// image has what `head` says.
[[nodiscard]] std::uint64_t checksum_of(const std::byte* entry, const EntryHead& head,
                                        const Location& location) noexcept;
/// Of a key, the same at all members.
[[nodiscard]] std::uint64_t hash_of(std::span<const std::byte> key) noexcept;

// --- what entries lie in -------------------------------------------------------------------------

inline constexpr std::size_t kSmallSlabBytes = 64 << 10;
inline constexpr std::array<std::size_t, 24> kSmallBlocks{
    64,   128,  192,  192,  256,  320,  384,  512,  640,   768,   1024,  1280,
    1536, 2048, 2560, 3072, 4096, 5120, 6144, 8192, 12288, 16384, 32768, kSmallSlabBytes};
/// Longer entries lie in the pool for large ones.
inline constexpr std::size_t kMostSmallBytes = 32768;
inline constexpr std::size_t kLargeSlabBytes = 1088 << 10;
inline constexpr std::array<std::size_t, 5> kLargeBlocks{69632, 139264, 278528, 557056, 1114112};
static_assert(kLargeBlocks.back() >= entry_bytes(kMaxStoreKeyBytes, kMaxStoreValueBytes));
static_assert(kLargeBlocks.back() <= kLargeSlabBytes && kSmallBlocks.back() <= kSmallSlabBytes);
static_assert(kSmallBlocks.size() <= 32 && kLargeBlocks.size() <= 32);
static_assert(kMaxRegionBytes <= slot_word::kMostOffset);
/// Bytes of the block; 0 if there is no such size.
[[nodiscard]] constexpr std::size_t block_bytes(const Location& location) noexcept {
  if (location.large)
    return location.size_class < kLargeBlocks.size() ? kLargeBlocks[location.size_class] : 0;
  return location.size_class < kSmallBlocks.size() ? kSmallBlocks[location.size_class] : 0;
}
/// Whether a slot's word leads to a block.
[[nodiscard]] constexpr bool leads_to_entry(std::uint64_t word) noexcept {
  return slot_word::type_of(word) == SlotType::entry &&
         block_bytes(slot_word::location_of(word)) != 0;
}
/// The size class of indirect headers. Those are never freed, so no entry lies in their slabs.
inline constexpr std::uint32_t kIndirectClass = 3;
static_assert(kSmallBlocks[kIndirectClass] >= sizeof(Bucket));
/// The size class of extents: main headers that an index has got by growing. They stay, too.
inline constexpr std::uint32_t kExtentClass = 23;
inline constexpr std::uint64_t kExtentHeaders = kSmallSlabBytes / sizeof(MainHeader);
static_assert(kSmallBlocks[kExtentClass] == kSmallSlabBytes && kExtentHeaders == 409);

// --- redo records: of entries that are changed in place ------------------------------------------

inline constexpr std::size_t kRedoRecords = 8;  // of each member, at each home
inline constexpr std::size_t kRedoBytes = 1280;
struct RedoHead {
  std::uint64_t word = 0;      // of the slot
  std::uint64_t bytes = 0;     // of the image, which follows
  std::uint64_t checksum = 0;  // of word, bytes, and image
};
static_assert(sizeof(RedoHead) == 24);
inline constexpr std::size_t kMostInPlace = kRedoBytes - sizeof(RedoHead);
[[nodiscard]] std::uint64_t checksum_of(const RedoHead& head, const std::byte* image) noexcept;

// --- records of transactions: which slots one is to change ---------------------------------------

enum class TransactionState : std::uint8_t { none, prepared, committed };

/// A key has an owner, a backup, and a member that gets a copy.
inline constexpr std::size_t kMaxTransactionHomes = 3 * kMaxTransactionWrites;

struct TransactionHead {
  std::uint64_t state = 0;     // serial << 2 | state; written after all the rest
  std::uint64_t checksum = 0;  // of the rest
  std::uint64_t lock = 0;      // the word in its chains
  std::uint32_t items = 0;
  std::uint32_t homes = 0;
  std::array<std::uint16_t, kMaxTransactionHomes> ranks{};  // of the homes
};
/// A slot, or a link, that is to change.
struct TransactionItem {
  std::uint64_t chain = 0;  // its main header: offset << 1, and 1: of an extent
  std::uint64_t at = 0;     // offset << 1, and 1: of an indirect header; 0: nothing changes
  std::uint64_t hash = 0;
  std::uint64_t word = 0;  // of the slot then; 0: the key is erased. Or the link's
  std::uint64_t former_word = 0;
  std::uint64_t former_guard = 0;  // that the former entry gets
};
static_assert(sizeof(TransactionHead) == 128 && sizeof(TransactionItem) == 48);
inline constexpr std::size_t kTransactionRecords = 4;  // of each member, at each home
inline constexpr std::size_t kTransactionBytes =
    sizeof(TransactionHead) + kMaxTransactionWrites * sizeof(TransactionItem);
static_assert(kTransactionBytes % kCacheLineBytes == 0);
[[nodiscard]] constexpr std::uint64_t state_word(std::uint64_t serial,
                                                 TransactionState state) noexcept {
  return serial << 2 | static_cast<std::uint64_t>(state);
}
/// Of `record`, which begins with its head.
[[nodiscard]] std::uint64_t checksum_of(const TransactionHead& head,
                                        const std::byte* record) noexcept;

// --- where the records of both kinds are ---------------------------------------------------------

inline constexpr std::size_t kRecordBytesOfRank =
    kRedoRecords * kRedoBytes + kTransactionRecords * kTransactionBytes;
[[nodiscard]] constexpr std::uint64_t redo_at(Rank by, std::size_t record) noexcept {
  return std::uint64_t{by} * kRecordBytesOfRank + record * kRedoBytes;
}
[[nodiscard]] constexpr std::uint64_t transaction_at(Rank by, std::size_t record) noexcept {
  return redo_at(by, kRedoRecords) + record * kTransactionBytes;
}
static_assert(kTransactionBytes == 896 && kRecordBytesOfRank == 13824 &&
                  transaction_at(2, 1) == 38784 &&
                  state_word(5, TransactionState::prepared) == 0x15 &&
                  state_word(5, TransactionState::committed) == 0x16,
              "docs/formats/store.md");

}  // namespace dunlin::store

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dunlin/limits.hpp>

/// The statistics that a member publishes of a store for observers such as `dunlin top`:
/// docs/formats/store-statistics.md.
namespace dunlin::store_page {

inline constexpr std::uint64_t kMagic = 0x31524F54534E5544;  // "DUNSTOR1", little-endian
inline constexpr std::uint32_t kVersion = 1;
/// Not "store:", which the index has: of one name in a process no two regions have one generation.
inline constexpr std::string_view kPrefix = "store-stats:";

/// Calls, by what they are.
enum class Count : std::uint8_t { gets, puts, erases, others };
inline constexpr std::size_t kCounts = 4;

/// A member's own part, as it was counted last.
struct Part {
  std::uint64_t keys = 0;
  std::uint64_t value_bytes = 0;
  std::uint64_t memory_bytes = 0;  // for entries, without what a limit keeps unused
  std::uint64_t used_bytes = 0;    // of these, in blocks that are linked
  std::uint64_t limit_bytes = 0;   // 0: none
  std::uint64_t evictions = 0;
  std::uint64_t main_slots = 0;
  std::uint64_t main_slots_used = 0;
  std::uint64_t indirect_headers = 0;       // that are linked
  std::uint64_t indirect_headers_free = 0;  // blocks for more of them, in slabs that are taken
  std::uint64_t locked_chains = 0;
  std::uint64_t held_bytes = 0;  // of memory_bytes, in slabs that members hold
  friend bool operator==(const Part&, const Part&) = default;
};

struct Page {
  std::uint64_t magic;  // written last
  std::uint32_t version;
  std::uint32_t is_home;  // 0: this member holds no keys, and the part is 0
  // From here on, words that change.
  alignas(kCacheLineBytes) Part part;
  // Of the calls of this process.
  alignas(kCacheLineBytes) std::array<std::uint64_t, kCounts> begun;
  std::uint64_t in_flight;  // of all that its progress advances
  std::uint64_t lock_waits;
  std::uint64_t waits_for_room;
  std::uint64_t cache_slots;
  std::uint64_t cache_hits;
  std::uint64_t cache_misses;
  std::uint64_t cache_stale;
};

static_assert(offsetof(Page, part) == 64 && sizeof(Part) == 96);
static_assert(offsetof(Part, main_slots) == 48 && offsetof(Part, locked_chains) == 80 &&
              offsetof(Part, held_bytes) == 88);
static_assert(offsetof(Page, begun) == 192);
static_assert(offsetof(Page, in_flight) == 224 && offsetof(Page, cache_slots) == 248);
static_assert(offsetof(Page, cache_stale) == 272 && sizeof(Page) == 320);

}  // namespace dunlin::store_page

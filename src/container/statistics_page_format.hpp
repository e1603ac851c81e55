#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dunlin/container/limits.hpp>

/// The statistics that a process publishes of the containers of one Containers for observers such
/// as `dunlin top`: docs/formats/container-statistics.md.
namespace dunlin::container_page {

inline constexpr std::uint64_t kMagic = 0x31544E4F434E5544;  // "DUNCONT1", little-endian
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::string_view kPrefix = "containers:";
inline constexpr std::uint32_t kMaxShown = 64;  // containers; further ones are only counted
inline constexpr std::uint64_t kUnknown = UINT64_MAX;

enum class Kind : std::uint32_t { none, map, set, queue, array, counter, bloom_filter };
inline constexpr std::size_t kKinds = 7;

/// Calls, by how they were done.
enum class Way : std::uint8_t {
  one_sided,   // by this process, on another member's part or its own
  by_message,  // likewise
  local,       // by this process with its processor, on its own part
  served       // by this process on its own part, for another member
};
inline constexpr std::size_t kWays = 4;

struct Slot {
  std::uint32_t kind;  // 0: the slot is free; else written last
  std::uint32_t name_bytes;
  std::array<char, kMaxContainerNameBytes> name;
  std::uint64_t entries;   // as far as this process knows; or kUnknown
  std::uint64_t capacity;  // or kUnknown
  std::array<std::uint64_t, kWays> calls;
};

struct Page {
  std::uint64_t magic;  // written last
  std::uint32_t version;
  std::uint32_t slots_count;
  // From here on, words that change.
  alignas(kCacheLineBytes) std::uint64_t containers;  // also those without a slot
  std::uint64_t in_flight;                            // of all that their progress advances
  alignas(kCacheLineBytes) std::array<Slot, kMaxShown> slots;
};

static_assert(offsetof(Slot, name) == 8 && offsetof(Slot, entries) == 48);
static_assert(offsetof(Slot, calls) == 64 && sizeof(Slot) == 96);
static_assert(offsetof(Page, containers) == 64 && offsetof(Page, slots) == 128);
static_assert(sizeof(Page) == 6272);

}  // namespace dunlin::container_page

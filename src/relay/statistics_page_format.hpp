#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dunlin/limits.hpp>

/// The statistics that a relay publishes for observers such as `dunlin top`:
/// docs/formats/relay-statistics.md.
namespace dunlin::relay_page {

inline constexpr std::uint64_t kMagic = 0x31594C45524E5544;  // "DUNRELY1", little-endian
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::string_view kPrefix = "relay-stats:";

/// Counts since the relay began; those of RelayCounters.
enum class Count : std::uint8_t {
  accepted,
  rejected,
  damaged,
  dropped,
  resumed,
  published,
  published_bytes,
  repeated,
  delivered,
  delivered_bytes,
  skipped
};
inline constexpr std::size_t kCounts = 11;

struct Page {
  std::uint64_t magic;  // written last
  std::uint32_t version;
  std::uint32_t is_encrypted;  // clients must know a secret
  std::uint64_t most_clients;  // connections that it takes at a time
  // From here on, words that change.
  alignas(kCacheLineBytes) std::uint64_t clients;  // connections
  std::uint64_t blocked_clients;                   // of them, those that wait for room in a topic
  std::uint64_t waiting_bytes;                     // for all clients
  std::uint64_t most_waiting_bytes;                // for one of them
  alignas(kCacheLineBytes) std::array<std::uint64_t, kCounts> counts;
};

static_assert(offsetof(Page, version) == 8 && offsetof(Page, most_clients) == 16);
static_assert(offsetof(Page, clients) == 64 && offsetof(Page, most_waiting_bytes) == 88);
static_assert(offsetof(Page, counts) == 128 && sizeof(Page) == 256);

}  // namespace dunlin::relay_page

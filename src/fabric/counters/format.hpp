#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dunlin/limits.hpp>

/// The counters that a process publishes for observers such as `dunlin top`, with what describes
/// them: docs/formats/counters.md. The idea is that of Aeron's counters.
namespace dunlin::counter_page {

inline constexpr std::uint64_t kMagic = 0x31544E55434E5544;  // "DUNCUNT1", little-endian
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::string_view kRegion = "counters";
inline constexpr std::uint32_t kCounters =
    128;  // one page has; a process has as many pages as it needs
inline constexpr std::uint32_t kWords = 2048;  // one page has
inline constexpr std::uint64_t kUnknown = UINT64_MAX;

struct Record {
  /// 0: free. Written last, and cleared first: look at it before and after.
  std::uint64_t serial = 0;
  std::uint32_t first_word = 0;
  std::uint32_t words = 0;
  std::uint8_t kind = 0;  // CounterKind
  std::uint8_t unit = 0;  // CounterUnit
  std::uint8_t name_bytes = 0;
  std::uint8_t labels_bytes = 0;
  std::uint32_t reserved = 0;
  std::array<char, 40> name{};
  std::array<char, 192> labels{};  // key=value, a line for each
};

struct Page {
  std::uint64_t magic;  // written last
  std::uint32_t version;
  std::uint32_t counters;  // kCounters
  std::uint32_t words;     // kWords
  std::uint32_t reserved;
  alignas(kCacheLineBytes) std::array<Record, kCounters> records;
  alignas(kCacheLineBytes) std::array<std::uint64_t, kWords> values;
};

static_assert(offsetof(Record, kind) == 16 && offsetof(Record, name) == 24);
static_assert(offsetof(Record, labels) == 64 && sizeof(Record) == 256);
static_assert(offsetof(Page, records) == 64 && offsetof(Page, values) == 32'832);
static_assert(sizeof(Page) == 49'216);

}  // namespace dunlin::counter_page

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <dunlin/limits.hpp>

/// A table publishes this page for observers such as `dunlin top`: its own thread alone writes it,
/// any process that may map it reads it, and the table never reads it back.
/// docs/formats/table-statistics.md describes it.
namespace dunlin::statistics_page {

inline constexpr std::uint64_t kMagic = 0x3144524F424E5544;  // "DUNBORD1", little-endian
inline constexpr std::uint32_t kVersion = 1;

struct Row {
  std::uint32_t rank;
  std::uint32_t state;         // RowState
  std::uint64_t refreshed_ns;  // own row: last push; others: last pull (reads mode), else 0
  std::uint64_t since_ns;      // when it took this state
};

struct PredicateSlot {
  std::uint64_t
      id;  // 0: free. Written last when shown, first when hidden; check it before and after
  std::uint64_t first_pass;
  std::uint64_t firings;
  std::uint32_t kind;  // PredicateKind
  std::uint32_t triggers;
  std::array<char, kMaxPredicateNameBytes> name;  // ends with a zero if shorter
};

struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t rows;
  std::uint32_t my_row;
  std::uint32_t refresh;  // Refresh
  std::uint64_t row_bytes;
  std::uint64_t stride_bytes;
  std::uint64_t created_ns;
  std::uint64_t predicates;  // registered, shown or not
  std::uint64_t rows_offset;
  std::uint64_t predicates_offset;
  std::uint64_t predicate_slots;
  // Counters, on a line of their own.
  alignas(kCacheLineBytes) std::uint64_t passes;
  std::uint64_t pushes;
  std::uint64_t pulls;
};

static_assert(sizeof(Row) == 24);
static_assert(sizeof(PredicateSlot) == 96);
static_assert(offsetof(Header, created_ns) == 40);
static_assert(offsetof(Header, predicate_slots) == 72);
static_assert(offsetof(Header, passes) == 128);
static_assert(sizeof(Header) == 192);

/// Where things are, for a table of `rows` rows.
[[nodiscard]] constexpr std::size_t rows_offset() noexcept { return sizeof(Header); }
[[nodiscard]] constexpr std::size_t predicates_offset(std::size_t rows) noexcept {
  const std::size_t end = rows_offset() + rows * sizeof(Row);
  return round_up(end, kCacheLineBytes);
}
[[nodiscard]] constexpr std::size_t total_bytes(std::size_t rows) noexcept {
  return predicates_offset(rows) + kMaxPublishedPredicates * sizeof(PredicateSlot);
}

}  // namespace dunlin::statistics_page

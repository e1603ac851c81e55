#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <dunlin/table/layout.hpp>

/// The values in a row of another process; they no longer depend on its memory. The layout
/// has passed Layout::check(); the bytes may be anything.
namespace dunlin::top {

/// Entries of a column that are read at most; a list's are the last ones.
inline constexpr std::size_t kMaxEntriesRead = 1024;
inline constexpr std::size_t kMaxListEntriesRead = 16;
/// Bytes of one entry that are read at most.
inline constexpr std::size_t kMaxEntryBytesRead = 1024;

using Bytes = std::vector<std::byte>;
/// Nothing: the entry was never whole while we looked.
using Value =
    std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Bytes>;

struct ColumnValues {
  std::vector<Value> entries = {};
  std::uint64_t begin = 0;  // for a list: the indices of the oldest value and the next one
  std::uint64_t end = 0;
};

/// Reads a column of the row at `row` (8-byte aligned, the layout's row_bytes long), which its
/// owner may be writing. Bounded in time, whatever lies there.
[[nodiscard]] ColumnValues read_column(const Column& column, const std::byte* row);

}  // namespace dunlin::top

#pragma once

#include <cstddef>
#include <cstdint>

#include <dunlin/table/layout.hpp>

/// Consistent copies of a row's contents, column by column. `to` holds a valid row before and
/// after.
namespace dunlin::row_copy {

/// The guards of a fetched list: its end was read before its values, its begin after them.
struct ListGuard {
  std::uint64_t end_before;
  std::uint64_t begin_after;
};

// These copy from memory that its owner (or the fabric) may be writing, into the caller's own.
void copy_words(const Column& column, std::byte* to, const std::byte* from) noexcept;
/// Leaves an entry of which no slot is whole as it is.
void copy_stamped(const Column& column, std::byte* to, const std::byte* from) noexcept;
void copy_list(const Column& column, std::byte* to, const std::byte* from) noexcept;
/// Copies in reverse order of declaration, so that no guard is in the copy without its data.
void copy_row(const Layout& layout, std::byte* to, const std::byte* from) noexcept;

// These copy a fetched row, in memory of our own, into a row that other threads and observers are
// reading: it changes as if its owner had pushed it.
void place_words(const Column& column, std::byte* to, const std::byte* from) noexcept;
/// If the only whole slot is older than the value that is there already, that value stays: the
/// lines of `from` were fetched at different times.
void place_stamped(const Column& column, std::byte* to, const std::byte* from) noexcept;
void place_list(const Column& column, std::byte* to, const std::byte* from,
                const ListGuard& guard) noexcept;

/// The slot of a stamped entry (0 or 1) that was written last.
[[nodiscard]] unsigned newer_slot(const std::byte* entry, std::size_t slot_bytes) noexcept;

}  // namespace dunlin::row_copy

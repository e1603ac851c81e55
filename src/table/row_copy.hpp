#pragma once

#include <cstddef>
#include <cstdint>

#include <dunlin/table/layout.hpp>

/// Consistent copies of a row's contents, column by column. `to` holds a valid row before and
/// after.
namespace dunlin::row_copy {

/// How a fetched row's lists are bounded: by guards that were read before, and after, its values.
struct ListGuard {
  std::uint64_t end_before;
  std::uint64_t begin_after;
};

// From memory that its owner (or the fabric) may be writing, into the caller's own.
void copy_words(const Column& column, std::byte* to, const std::byte* from) noexcept;
/// Entries of which no slot is whole are left as they are.
void copy_stamped(const Column& column, std::byte* to, const std::byte* from) noexcept;
void copy_list(const Column& column, std::byte* to, const std::byte* from) noexcept;
/// In reverse order of declaration, so that no guard is in the copy without its data.
void copy_row(const Layout& layout, std::byte* to, const std::byte* from) noexcept;

// From memory of our own, into which a peer's row was fetched, into a row that other threads and
// observers are reading: it changes as if its owner had pushed it.
void place_words(const Column& column, std::byte* to, const std::byte* from) noexcept;
/// The lines of `from` were fetched at different times: so the one slot which is whole may be older
/// than the value that is there already, which then stays.
void place_stamped(const Column& column, std::byte* to, const std::byte* from) noexcept;
/// A list that was fetched between two looks at its guards.
void place_list(const Column& column, std::byte* to, const std::byte* from,
                const ListGuard& guard) noexcept;

/// Of the two slots of a stamped entry, the one that was written last (0 or 1).
[[nodiscard]] unsigned newer_slot(const std::byte* entry, std::size_t slot_bytes) noexcept;

}  // namespace dunlin::row_copy

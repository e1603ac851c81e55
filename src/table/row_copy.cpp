#include "table/row_copy.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <dunlin/fabric/memory.hpp>

namespace dunlin::row_copy {
namespace {

constexpr std::size_t kTailOffset = kCacheLineBytes - sizeof(std::uint32_t);

std::uint32_t stamp_at(const std::byte* at) noexcept {
  std::uint32_t stamp;
  std::memcpy(&stamp, at, sizeof stamp);
  return stamp;
}

/// Whether a slot in memory of our own is whole (TAB-C2).
bool whole(const std::byte* slot, std::size_t slot_bytes) noexcept {
  const std::uint32_t first = stamp_at(slot);
  for (std::size_t line = 0; line < slot_bytes; line += kCacheLineBytes) {
    if (stamp_at(slot + line) != first || stamp_at(slot + line + kTailOffset) != first)
      return false;
  }
  return true;
}
bool fetch_slot(std::byte* to, const std::byte* from, std::size_t slot_bytes) noexcept {
  memory::fetch(to, from, slot_bytes);
  return whole(to, slot_bytes);
}

std::uint64_t load_index(const std::byte* at) noexcept {
  return memory::load(*reinterpret_cast<const std::uint64_t*>(at));
}
void store_index(std::byte* at, std::uint64_t value) noexcept {
  memory::store(*reinterpret_cast<std::uint64_t*>(at), value);
}

/// Calls `take(where in the list, bytes)` for entries [begin, end), at most as many as it can hold.
template <class Take>
void for_each_value(const Column& column, std::uint64_t begin, std::uint64_t end,
                    const Take& take) noexcept {
  if (end - begin > column.count) begin = end - column.count;
  for (std::uint64_t i = begin; i < end; ++i)
    take(kListSlotsOffset + i % column.count * column.stride_bytes, column.stride_bytes);
}

/// Copies the newest whole value of one entry into both slots of the target: a reader finds either.
bool take_newest(std::byte* target, const std::byte* source, std::size_t slot_bytes) noexcept {
  const unsigned current = newer_slot(target, slot_bytes);
  std::byte* kept = target + current * slot_bytes;
  std::byte* taken = target + (1 - current) * slot_bytes;
  const unsigned newer = newer_slot(source, slot_bytes);
  const bool accepted = fetch_slot(taken, source + newer * slot_bytes, slot_bytes) ||
                        fetch_slot(taken, source + (1 - newer) * slot_bytes, slot_bytes);
  if (!accepted) std::swap(kept, taken);
  memory::place(kept, taken, slot_bytes);
  return accepted;
}

/// Calls `take(target, source, slot_bytes)` for every entry of a stamped column.
template <class Take>
void for_each_entry(const Column& column, std::byte* to, const std::byte* from,
                    Take take) noexcept {
  for (std::size_t i = 0; i < column.count; ++i) {
    const std::size_t entry = column.offset + i * column.stride_bytes;
    take(to + entry, from + entry, column.stride_bytes / 2);
  }
}

}  // namespace

unsigned newer_slot(const std::byte* entry, std::size_t slot_bytes) noexcept {
  // The tail of a slot's last line is the last word that a writer of it touches.
  const auto tail = [&](unsigned slot) {
    const std::byte* word = entry + (slot + 1) * slot_bytes - kWordBytes;
    return static_cast<std::uint32_t>(load_index(word) >> 32);
  };
  return static_cast<std::int32_t>(tail(1) - tail(0)) > 0 ? 1 : 0;
}

// --- into memory of our own ----------------------------------------------------------------------

void copy_words(const Column& column, std::byte* to, const std::byte* from) noexcept {
  memory::fetch(to + column.offset, from + column.offset, column.bytes);
}

void copy_stamped(const Column& column, std::byte* to, const std::byte* from) noexcept {
  for_each_entry(column, to, from, [](auto* target, const auto* source, std::size_t slot_bytes) {
    // An attempt fails only if the writer laps us, and has completed a value meanwhile.
    for (int attempt = 0; attempt < 1000; ++attempt) {
      if (take_newest(target, source, slot_bytes)) return;
    }
  });
}

void copy_list(const Column& column, std::byte* to, const std::byte* from) noexcept {
  const std::byte* source = from + column.offset;
  std::byte* target = to + column.offset;
  const std::uint64_t end = load_index(source + kListEndOffset);
  for_each_value(
      column, load_index(source + kListBeginOffset), end,
      [=](std::size_t at, std::size_t bytes) { memory::fetch(target + at, source + at, bytes); });
  store_index(target + kListBeginOffset, std::min(load_index(source + kListBeginOffset), end));
  store_index(target + kListEndOffset, end);
}

// --- into a row that others watch ----------------------------------------------------------------

void place_words(const Column& column, std::byte* to, const std::byte* from) noexcept {
  memory::place(to + column.offset, from + column.offset, column.bytes);
}

void place_stamped(const Column& column, std::byte* to, const std::byte* from) noexcept {
  for_each_entry(column, to, from, [](auto* target, const auto* source, std::size_t slot_bytes) {
    const unsigned newer = newer_slot(source, slot_bytes);
    const std::byte* value = source + newer * slot_bytes;
    if (!whole(value, slot_bytes)) value = source + (1 - newer) * slot_bytes;
    if (!whole(value, slot_bytes)) return;
    const unsigned current = newer_slot(target, slot_bytes);
    // If the newer slot was torn when it was fetched, the older slot may be from before its last
    // write: then its value is one version older than the value that is here already.
    if (stamp_at(value) == stamp_at(target + current * slot_bytes) - 1) return;
    for (const unsigned slot : {1 - current, current})
      memory::place(target + slot * slot_bytes, value, slot_bytes);
  });
}

void place_list(const Column& column, std::byte* to, const std::byte* from,
                const ListGuard& guard) noexcept {
  const std::byte* source = from + column.offset;
  std::byte* target = to + column.offset;
  const std::uint64_t begin = std::min(guard.begin_after, guard.end_before);
  store_index(target + kListBeginOffset, begin);
  for_each_value(column, begin, guard.end_before, [=](std::size_t at, std::size_t bytes) {
    memory::place(target + at, source + at, bytes);
  });
  store_index(target + kListEndOffset, guard.end_before);
}

void copy_row(const Layout& layout, std::byte* to, const std::byte* from) noexcept {
  for (auto next = layout.columns.rbegin(); next != layout.columns.rend(); ++next) {
    const Column& column = *next;
    switch (column.kind) {
      case ColumnKind::word:
        copy_words(column, to, from);
        break;
      case ColumnKind::stamped:
        copy_stamped(column, to, from);
        break;
      case ColumnKind::list:
        copy_list(column, to, from);
        break;
    }
  }
}

}  // namespace dunlin::row_copy

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

/// Copies a slot and says whether the copy is whole (cell.hpp, TAB-C2).
bool fetch_slot(std::byte* to, const std::byte* from, std::size_t slot_bytes) noexcept {
  memory::fetch(to, from, slot_bytes);
  const std::uint32_t first = stamp_at(to);
  for (std::size_t line = 0; line < slot_bytes; line += kCacheLineBytes) {
    if (stamp_at(to + line) != first || stamp_at(to + line + kTailOffset) != first) return false;
  }
  return true;
}

std::uint64_t load_index(const std::byte* at) noexcept {
  return memory::load(*reinterpret_cast<const std::uint64_t*>(at));
}
void store_index(std::byte* at, std::uint64_t value) noexcept {
  memory::store(*reinterpret_cast<std::uint64_t*>(at), value);
}

/// Copies entries [begin, end) of a list, at most as many as it can hold.
void copy_slots(const Column& column, std::byte* to, const std::byte* from, std::uint64_t begin,
                std::uint64_t end) noexcept {
  if (end - begin > column.count) begin = end - column.count;
  for (std::uint64_t i = begin; i < end; ++i) {
    const std::size_t at = kListSlotsOffset + i % column.count * column.stride_bytes;
    memory::fetch(to + at, from + at, column.stride_bytes);
  }
}

void finish_list(std::byte* to, std::uint64_t begin, std::uint64_t end) noexcept {
  store_index(to + kListBeginOffset, std::min(begin, end));
  store_index(to + kListEndOffset, end);
}

/// Takes the newest whole value of one entry, if `accept(current stamp, its stamp)`. It is then
/// kept in both slots of the target, of which a reader finds either.
template <class Accept>
bool take_newest(std::byte* target, const std::byte* source, std::size_t slot_bytes,
                 Accept accept) noexcept {
  const unsigned current = newer_slot(target, slot_bytes);
  std::byte* kept = target + current * slot_bytes;
  std::byte* taken = target + (1 - current) * slot_bytes;
  const unsigned newer = newer_slot(source, slot_bytes);
  const bool whole = fetch_slot(taken, source + newer * slot_bytes, slot_bytes) ||
                     fetch_slot(taken, source + (1 - newer) * slot_bytes, slot_bytes);
  const bool accepted = whole && accept(stamp_at(kept), stamp_at(taken));
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

void copy_words(const Column& column, std::byte* to, const std::byte* from) noexcept {
  memory::fetch(to + column.offset, from + column.offset, column.bytes);
}

void copy_stamped(const Column& column, std::byte* to, const std::byte* from) noexcept {
  for_each_entry(column, to, from, [](auto* target, const auto* source, std::size_t slot_bytes) {
    const auto any = [](std::uint32_t, std::uint32_t) { return true; };
    // An attempt fails only if the writer laps us, and each time it has completed a value
    // meanwhile.
    for (int attempt = 0; attempt < 1000; ++attempt) {
      if (take_newest(target, source, slot_bytes, any)) return;
    }
  });
}

void copy_fetched_stamped(const Column& column, std::byte* to, const std::byte* from) noexcept {
  for_each_entry(column, to, from, [](auto* target, const auto* source, std::size_t slot_bytes) {
    // If the newer slot was torn when it was fetched, the other may have been fetched before it
    // was written last: it is then one older than what it held when the last fetch began.
    const auto not_back = [](std::uint32_t current, std::uint32_t next) {
      return next != current - 1;
    };
    take_newest(target, source, slot_bytes, not_back);
  });
}

void copy_list(const Column& column, std::byte* to, const std::byte* from) noexcept {
  const std::byte* source = from + column.offset;
  const std::uint64_t end = load_index(source + kListEndOffset);
  copy_slots(column, to + column.offset, source, load_index(source + kListBeginOffset), end);
  finish_list(to + column.offset, load_index(source + kListBeginOffset), end);
}

void copy_fetched_list(const Column& column, std::byte* to, const std::byte* from,
                       const ListGuard& guard) noexcept {
  copy_slots(column, to + column.offset, from + column.offset,
             std::min(guard.begin_after, guard.end_before), guard.end_before);
  finish_list(to + column.offset, guard.begin_after, guard.end_before);
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

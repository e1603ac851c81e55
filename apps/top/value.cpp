#include "top/value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include <dunlin/fabric/memory.hpp>

#include "table/row_copy.hpp"

namespace dunlin::top {
namespace {

constexpr std::size_t kStampBytes = sizeof(std::uint32_t);
constexpr std::size_t kLinePayloadBytes = kCacheLineBytes - 2 * kStampBytes;
constexpr int kAttempts = 100;

template <class T>
T copy_as(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// The double that prints like the float: 0.1, and not 0.100000001.
double widen(float value) {
  double wide = value;
  const std::string text = fmt::format("{}", value);
  std::from_chars(text.data(), text.data() + text.size(), wide);
  return wide;
}

std::string text_of(const std::byte* from, std::size_t bytes) {
  const auto* text = reinterpret_cast<const char*>(from);
  return {text, std::find(text, text + bytes, '\0')};
}

Bytes bytes_of(const std::byte* from, std::size_t bytes) { return {from, from + bytes}; }

template <class Wide, class T>
Value number(const std::byte* from, std::size_t bytes) {
  // A layout from elsewhere may call anything a number.
  if (bytes != sizeof(T)) return bytes_of(from, bytes);
  return static_cast<Wide>(copy_as<T>(from));
}

Value decode(EntryType type, const std::byte* from, std::size_t bytes) {
  switch (type) {
    case EntryType::boolean:
      return bytes == 1 ? Value(*from != std::byte{0}) : Value(bytes_of(from, bytes));
    case EntryType::i8:
      return number<std::int64_t, std::int8_t>(from, bytes);
    case EntryType::i16:
      return number<std::int64_t, std::int16_t>(from, bytes);
    case EntryType::i32:
      return number<std::int64_t, std::int32_t>(from, bytes);
    case EntryType::i64:
      return number<std::int64_t, std::int64_t>(from, bytes);
    case EntryType::u8:
      return number<std::uint64_t, std::uint8_t>(from, bytes);
    case EntryType::u16:
      return number<std::uint64_t, std::uint16_t>(from, bytes);
    case EntryType::u32:
      return number<std::uint64_t, std::uint32_t>(from, bytes);
    case EntryType::u64:
      return number<std::uint64_t, std::uint64_t>(from, bytes);
    case EntryType::f32:
      return bytes == sizeof(float) ? Value(widen(copy_as<float>(from)))
                                    : Value(bytes_of(from, bytes));
    case EntryType::f64:
      return number<double, double>(from, bytes);
    case EntryType::text:
      return text_of(from, bytes);
    case EntryType::bytes:
      break;
  }
  return bytes_of(from, bytes);
}

std::uint64_t load_index(const std::byte* at) {
  return memory::load(*reinterpret_cast<const std::uint64_t*>(at));
}

Value read_word(const Column& c, const std::byte* at) {
  std::array<std::byte, kWordBytes> copy{};
  const auto load = [&](auto word) {
    word = memory::load(*reinterpret_cast<const decltype(word)*>(at));
    std::memcpy(copy.data(), &word, sizeof word);
  };
  switch (c.stride_bytes) {
    case 1:
      load(std::uint8_t{});
      break;
    case 2:
      load(std::uint16_t{});
      break;
    case 4:
      load(std::uint32_t{});
      break;
    default:
      load(std::uint64_t{});
      break;
  }
  return decode(c.type, copy.data(), c.entry_bytes);
}

/// The first bytes of a slot's value, if they are whole (table/cell.hpp, TAB-C2).
std::optional<Bytes> read_slot(const std::byte* slot, std::size_t bytes) {
  Bytes value(bytes);
  std::optional<std::uint32_t> stamp;
  for (std::size_t done = 0; done < bytes; done += kLinePayloadBytes, slot += kCacheLineBytes) {
    alignas(kCacheLineBytes) std::array<std::byte, kCacheLineBytes> line;
    memory::fetch(line.data(), slot, line.size());
    const auto head = copy_as<std::uint32_t>(line.data());
    const auto tail = copy_as<std::uint32_t>(line.data() + line.size() - kStampBytes);
    if (head != tail || stamp.value_or(head) != head) return std::nullopt;
    stamp = head;
    std::memcpy(value.data() + done, line.data() + kStampBytes,
                std::min(kLinePayloadBytes, bytes - done));
  }
  return value;
}

Value read_stamped(const Column& c, const std::byte* entry) {
  const std::size_t slot_bytes = c.stride_bytes / 2;
  const std::size_t room = slot_bytes / kCacheLineBytes * kLinePayloadBytes;
  if (c.entry_bytes > room) return {};
  const std::size_t bytes = std::min(c.entry_bytes, kMaxEntryBytesRead);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const unsigned newer = row_copy::newer_slot(entry, slot_bytes);
    for (const unsigned slot : {newer, 1 - newer}) {
      const std::optional<Bytes> value = read_slot(entry + slot * slot_bytes, bytes);
      if (value) return decode(c.type, value->data(), value->size());
    }
  }
  return {};
}

/// The last values; those that were truncated while we read them are left out (TAB-C4).
ColumnValues read_list(const Column& c, const std::byte* list) {
  ColumnValues values;
  values.end = load_index(list + kListEndOffset);
  values.begin = std::min(load_index(list + kListBeginOffset), values.end);
  const std::uint64_t shown =
      std::min<std::uint64_t>(values.end - values.begin, std::min(c.count, kMaxListEntriesRead));
  const std::size_t bytes = std::min(c.entry_bytes, kMaxEntryBytesRead);
  std::vector<std::uint64_t> copy((bytes + kWordBytes - 1) / kWordBytes);
  for (std::uint64_t i = values.end - shown; i < values.end; ++i) {
    const std::byte* place = list + kListSlotsOffset + i % c.count * c.stride_bytes;
    memory::fetch(copy.data(), place, copy.size() * kWordBytes);
    const std::uint64_t begin = load_index(list + kListBeginOffset);
    if (begin > i && begin <= values.end) {
      values.begin = begin;
      values.entries.clear();
      continue;
    }
    values.entries.push_back(
        decode(c.type, reinterpret_cast<const std::byte*>(copy.data()), bytes));
  }
  return values;
}

}  // namespace

ColumnValues read_column(const Column& column, const std::byte* row) {
  const std::byte* at = row + column.offset;
  if (column.kind == ColumnKind::list) return read_list(column, at);
  ColumnValues values;
  const std::size_t count = std::min(column.count, kMaxEntriesRead);
  for (std::size_t i = 0; i < count; ++i, at += column.stride_bytes) {
    values.entries.push_back(column.kind == ColumnKind::word ? read_word(column, at)
                                                             : read_stamped(column, at));
  }
  return values;
}

}  // namespace dunlin::top

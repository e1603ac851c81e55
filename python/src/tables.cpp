#include "tables.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <dunlin/fabric/memory.hpp>

namespace dunlin::python {
namespace {

// --- the cells of one column (table/cell.hpp has them for types that are known) ------------------

constexpr std::size_t kStampBytes = sizeof(std::uint32_t);
constexpr std::size_t kPayloadBytes = kCacheLineBytes - 2 * kStampBytes;

[[nodiscard]] std::uint32_t stamp_of(const std::byte* slot, std::size_t slot_bytes) noexcept {
  const std::byte* const word = slot + slot_bytes - kWordBytes;
  return static_cast<std::uint32_t>(memory::load(*reinterpret_cast<const std::uint64_t*>(word)) >>
                                    32);
}

/// Writes a value into a slot of stamped lines (TAB-C2).
void write_slot(std::byte* slot, std::uint32_t stamp, const std::byte* value, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kPayloadBytes, slot += kCacheLineBytes) {
    alignas(kCacheLineBytes) std::array<std::byte, kCacheLineBytes> line{};
    std::memcpy(line.data(), &stamp, kStampBytes);
    std::memcpy(line.data() + kStampBytes, value + at, std::min(kPayloadBytes, bytes - at));
    std::memcpy(line.data() + kCacheLineBytes - kStampBytes, &stamp, kStampBytes);
    memory::place(slot, line.data(), kCacheLineBytes);
  }
}

/// Stores a value in an entry of the own row: in the slot that is not the newest one (TAB-C3).
void store_stamped(std::byte* entry, std::size_t stride, const std::byte* value,
                   std::size_t bytes) {
  const std::size_t slot_bytes = stride / 2;
  const std::uint32_t first = stamp_of(entry, slot_bytes);
  const std::uint32_t second = stamp_of(entry + slot_bytes, slot_bytes);
  const std::uint32_t next = (static_cast<std::int32_t>(second - first) > 0 ? second : first) + 1;
  write_slot(entry + (next & 1U) * slot_bytes, next, value, bytes);
}

void store_word(std::byte* entry, std::size_t stride, const std::byte* value, std::size_t bytes) {
  const auto store = [&]<class Word>(Word word) {
    std::memcpy(&word, value, bytes);
    memory::store(*reinterpret_cast<Word*>(entry), word);
  };
  switch (stride) {
    case 1:
      return store(std::uint8_t{0});
    case 2:
      return store(std::uint16_t{0});
    case 4:
      return store(std::uint32_t{0});
    default:
      return store(std::uint64_t{0});
  }
}

void store_column(const Column& column, std::byte* row, const std::byte* values) {
  for (std::size_t i = 0; i < column.count; ++i) {
    std::byte* const entry = row + column.offset + i * column.stride_bytes;
    const auto store = column.kind == ColumnKind::word ? &store_word : &store_stamped;
    store(entry, column.stride_bytes, values + i * column.entry_bytes, column.entry_bytes);
  }
}

/// Makes the cells of a row with these values, as the constructors of cells do.
void make_row(const RowLayout& layout, std::byte* row, const std::byte* values) {
  for (std::size_t c = 0; c < layout.cells.columns.size(); ++c) {
    const Column& column = layout.cells.columns[c];
    for (std::size_t i = 0; i < column.count; ++i) {
      const std::byte* const value = values + layout.offsets[c] + i * column.entry_bytes;
      std::byte* const entry = row + column.offset + i * column.stride_bytes;
      if (column.kind == ColumnKind::word) {
        store_word(entry, column.stride_bytes, value, column.entry_bytes);
        continue;
      }
      write_slot(entry + column.stride_bytes / 2, UINT32_MAX, value, column.entry_bytes);
      write_slot(entry, 0, value, column.entry_bytes);
    }
  }
}

/// The values of a copied row: both slots of a stamped entry are whole there.
void load_row(const RowLayout& layout, const std::byte* row, std::byte* values) {
  for (std::size_t c = 0; c < layout.cells.columns.size(); ++c) {
    const Column& column = layout.cells.columns[c];
    for (std::size_t i = 0; i < column.count; ++i) {
      std::byte* const value = values + layout.offsets[c] + i * column.entry_bytes;
      const std::byte* const entry = row + column.offset + i * column.stride_bytes;
      if (column.kind == ColumnKind::word) {
        std::memcpy(value, entry, column.entry_bytes);
        continue;
      }
      for (std::size_t at = 0; at < column.entry_bytes; at += kPayloadBytes)
        std::memcpy(value + at, entry + at / kPayloadBytes * kCacheLineBytes + kStampBytes,
                    std::min(kPayloadBytes, column.entry_bytes - at));
    }
  }
}

/// A row begins on a cache line, and so does what comes behind it: its last word is whole.
[[nodiscard]] std::size_t words_of(const Layout& cells) noexcept {
  return round_up(cells.row_bytes, kWordBytes) / kWordBytes;
}

}  // namespace

// --- the object ----------------------------------------------------------------------------------

TableObject::TableObject(node::Engine& engine, std::string name, RowLayout layout,
                         std::vector<std::byte> initial)
    : engine_(engine),
      name_(std::move(name)),
      layout_(std::move(layout)),
      initial_(std::move(initial)),
      scratch_(layout_.cells.row_bytes) {
  make_row(layout_, scratch_.data(), initial_.data());
  make();
}

/// Makes the table of the view at hand, in which the own row goes on with what it had.
void TableObject::make() {
  const View& view = engine_.group().view();
  if (std::ranges::find(view.ranks, engine_.fabric().rank()) == view.ranks.end()) return;
  // Another thread may have made the view's table before the node's thread came to the view.
  if (core_ && core_->options().generation == view.number) return;
  auto next = std::make_unique<TableCore>(
      engine_.fabric(), layout_.cells,
      [this](std::byte* row) { make_row(layout_, row, initial_.data()); },
      TableOptions{.name = name_, .members = view.ranks, .generation = view.number});
  if (core_) {
    std::vector<std::byte> mine(layout_.bytes);
    load(core_->my_row(), mine.data());
    for (std::size_t c = 0; c < layout_.offsets.size(); ++c)
      store_column(layout_.cells.columns[c], next->mine(), mine.data() + layout_.offsets[c]);
  }
  core_ = std::move(next);
  members_ = view.members;
  static_cast<void>(core_->push(core_->whole_row()));
}

void TableObject::publish(std::span<const std::size_t> columns, std::span<const std::byte> values) {
  std::vector<PushItem> items;
  for (const std::size_t c : columns) {
    const Column& column = layout_.cells.columns[c];
    store_column(column, core_->mine(), values.data() + layout_.offsets[c]);
    if (column.kind == ColumnKind::word)
      items.push_back(
          {static_cast<std::uint32_t>(column.offset), static_cast<std::uint32_t>(column.bytes)});
    else
      items.push_back(core_->item(column.offset, column.bytes, column.kind));
  }
  static_cast<void>(core_->push(items));
}

void TableObject::load(std::size_t row, std::byte* values) const {
  core_->copy_row(row, scratch_.data());
  load_row(layout_, scratch_.data(), values);
}

std::vector<std::byte> TableObject::values_of(std::size_t row) const {
  core_->require_row(row);
  std::vector<std::byte> values(layout_.bytes);
  load(row, values.data());
  return values;
}

TableCopy TableObject::copy() const {
  const std::size_t rows = core_->size();
  const std::size_t words = words_of(layout_.cells);
  TableCopy copy;
  copy.stride_bytes =
      layout_.same ? round_up(layout_.cells.row_bytes, kCacheLineBytes) : layout_.bytes;
  copy.rows = RowMemory(rows * copy.stride_bytes);
  copy.my_row = core_->my_row();
  copy.view = core_->options().generation;
  copy.members = members_;
  copy.seen.resize(rows * words);
  for (std::size_t i = 0; i < rows; ++i) {
    const auto* const live = reinterpret_cast<const std::uint64_t*>(core_->row(i));
    for (std::size_t w = 0; w < words; ++w) copy.seen[i * words + w] = memory::load(live[w]);
    copy.alive.push_back(core_->alive(i));
    std::byte* const to = copy.rows.data() + i * copy.stride_bytes;
    if (layout_.same)
      core_->copy_row(i, to);
    else
      load(i, to);
  }
  return copy;
}

bool TableObject::has_changed_since(const TableCopy& copy) const noexcept {
  if (copy.view != core_->options().generation) return true;
  const std::size_t words = words_of(layout_.cells);
  for (std::size_t i = 0; i < core_->size(); ++i) {
    if (copy.alive[i] != core_->alive(i)) return true;
    const auto* const live = reinterpret_cast<const std::uint64_t*>(core_->row(i));
    for (std::size_t w = 0; w < words; ++w)
      if (copy.seen[i * words + w] != memory::load(live[w])) return true;
  }
  return false;
}

std::size_t TableObject::poll() {
  if (!core_) return 0;
  return core_->poll() + (calls_.empty() ? 0 : calls_.poll());
}

// --- the handle ----------------------------------------------------------------------------------

RawTableHandle::RawTableHandle(std::shared_ptr<node::Engine> engine, const std::string& name,
                               RowLayout layout, std::vector<std::byte> initial)
    : engine_(std::move(engine)) {
  object_ = engine_->with_lock([&] {
    auto object = engine_->object<TableObject>("table '" + name + "'", [&] {
      return std::make_shared<TableObject>(*engine_, name, layout, initial);
    });
    if (object->layout().cells.text() != layout.cells.text())
      throw Error("table '" + name + "': this process has it already, with another row:\n" +
                  object->layout().cells.text());
    return object;
  });
}

void RawTableHandle::publish(std::span<const std::size_t> columns,
                             std::span<const std::byte> values) {
  engine_->with_lock([&] { object_->publish(columns, values); });
}

Future<void> RawTableHandle::until(TableTruth truth) {
  return begin_polled<void>(
      *engine_, object_->calls(),
      [object = object_.get(), truth = std::move(truth)]() -> std::optional<Result<void>> {
        if (!truth(object->core())) return std::nullopt;
        return Result<void>();
      });
}

Future<TableCopy> RawTableHandle::changed_since(std::shared_ptr<const TableCopy> copy) {
  return begin_polled<TableCopy>(
      *engine_, object_->calls(),
      [object = object_.get(), copy = std::move(copy)]() -> std::optional<Result<TableCopy>> {
        if (copy && !object->has_changed_since(*copy)) return std::nullopt;
        return Result<TableCopy>(object->copy());
      });
}

}  // namespace dunlin::python

#include "table/board.hpp"

#include <algorithm>
#include <cstring>

namespace dunlin {

PredicateBoard::PredicateBoard(std::byte* memory, std::size_t rows) noexcept
    : header_(reinterpret_cast<board::Header*>(memory)),
      rows_(reinterpret_cast<board::Row*>(memory + board::rows_offset())),
      slots_(reinterpret_cast<board::PredicateSlot*>(memory + board::predicates_offset(rows))) {}

void PredicateBoard::show(Predicate& predicate, std::uint64_t pass) noexcept {
  memory::store(header_->predicates, ++predicates_);
  for (std::uint32_t i = 0; i < kMaxShownPredicates; ++i) {
    board::PredicateSlot& slot = slots_[i];
    if (slot.id != 0) continue;
    alignas(kWordBytes) decltype(slot.name) name{};
    std::memcpy(name.data(), predicate.name.data(), std::min(predicate.name.size(), name.size()));
    memory::place(slot.name.data(), name.data(), name.size());
    memory::store(slot.kind, static_cast<std::uint32_t>(predicate.kind));
    memory::store(slot.triggers, static_cast<std::uint32_t>(predicate.first_triggers));
    memory::store(slot.first_pass, pass + 1);
    memory::store(slot.firings, 0);
    memory::store(slot.id, predicate.id);
    predicate.firings = &slot.firings;
    predicate.shown_at = i;
    return;
  }
}

void PredicateBoard::hide(Predicate& predicate) noexcept {
  memory::store(header_->predicates, --predicates_);
  if (predicate.shown_at != UINT32_MAX) memory::store(slots_[predicate.shown_at].id, 0);
}

TableBoard::TableBoard(Region region, std::size_t rows) noexcept
    : PredicateBoard(region.memory().data(), rows), region_(std::move(region)) {}

TableBoard::TableBoard(Fabric& fabric, const std::string& table, const Layout& layout,
                       std::size_t stride_bytes, const TableOptions& options, std::size_t my_row)
    : TableBoard(fabric.publish({.name = "board:" + table,
                                 .bytes = board::total_bytes(options.members.size()),
                                 .epoch = options.epoch,
                                 .layout_text = layout.text()}),
                 options.members.size()) {
  my_row_ = my_row;
  const std::size_t rows = options.members.size();
  header_->version = board::kVersion;
  header_->rows = static_cast<std::uint32_t>(rows);
  header_->my_row = static_cast<std::uint32_t>(my_row);
  header_->refresh = static_cast<std::uint32_t>(options.refresh);
  header_->row_bytes = layout.row_bytes;
  header_->stride_bytes = stride_bytes;
  header_->created_ns = fabric.now_ns();
  header_->rows_offset = board::rows_offset();
  header_->predicates_offset = board::predicates_offset(rows);
  header_->predicate_slots = kMaxShownPredicates;
  for (std::size_t i = 0; i < rows; ++i) rows_[i].rank = options.members[i];
  memory::store(header_->magic, board::kMagic);
}

void TableBoard::show_state(std::size_t row, RowState state, std::uint64_t now_ns) noexcept {
  memory::store(rows_[row].since_ns, now_ns);
  memory::store(rows_[row].state, static_cast<std::uint32_t>(state));
}

void TableBoard::show_pull(std::size_t row, std::uint64_t now_ns) noexcept {
  memory::store(header_->pulls, header_->pulls + 1);
  memory::store(rows_[row].refreshed_ns, now_ns);
}

}  // namespace dunlin

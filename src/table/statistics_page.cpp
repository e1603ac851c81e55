#include "table/statistics_page.hpp"

#include <algorithm>
#include <cstring>

namespace dunlin {

PredicateStatisticsPage::PredicateStatisticsPage(std::byte* memory, std::size_t rows) noexcept
    : header_(reinterpret_cast<statistics_page::Header*>(memory)),
      rows_(reinterpret_cast<statistics_page::Row*>(memory + statistics_page::rows_offset())),
      slots_(reinterpret_cast<statistics_page::PredicateSlot*>(
          memory + statistics_page::predicates_offset(rows))) {}

void PredicateStatisticsPage::publish(Predicate& predicate, std::uint64_t pass) noexcept {
  memory::store(header_->predicates, ++predicates_);
  for (std::uint32_t i = 0; i < kMaxPublishedPredicates; ++i) {
    statistics_page::PredicateSlot& slot = slots_[i];
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
    predicate.published_at = i;
    return;
  }
}

void PredicateStatisticsPage::withdraw(Predicate& predicate) noexcept {
  memory::store(header_->predicates, --predicates_);
  if (predicate.published_at != UINT32_MAX) memory::store(slots_[predicate.published_at].id, 0);
}

TableStatisticsPage::TableStatisticsPage(Region region, std::size_t rows) noexcept
    : PredicateStatisticsPage(region.memory().data(), rows), region_(std::move(region)) {}

TableStatisticsPage::TableStatisticsPage(Fabric& fabric, const std::string& table,
                                         const Layout& layout, std::size_t stride_bytes,
                                         const TableOptions& options, std::size_t my_row)
    : TableStatisticsPage(
          fabric.publish({.name = "stats:" + table,
                          .bytes = statistics_page::total_bytes(options.members.size()),
                          .generation = options.generation,
                          .layout_text = layout.text()}),
          options.members.size()) {
  my_row_ = my_row;
  const std::size_t rows = options.members.size();
  header_->version = statistics_page::kVersion;
  header_->rows = static_cast<std::uint32_t>(rows);
  header_->my_row = static_cast<std::uint32_t>(my_row);
  header_->refresh = static_cast<std::uint32_t>(options.refresh);
  header_->row_bytes = layout.row_bytes;
  header_->stride_bytes = stride_bytes;
  header_->created_ns = fabric.now_ns();
  header_->rows_offset = statistics_page::rows_offset();
  header_->predicates_offset = statistics_page::predicates_offset(rows);
  header_->predicate_slots = kMaxPublishedPredicates;
  for (std::size_t i = 0; i < rows; ++i) rows_[i].rank = options.members[i];
  memory::store(header_->magic, statistics_page::kMagic);
}

void TableStatisticsPage::publish_state(std::size_t row, RowState state,
                                        std::uint64_t now_ns) noexcept {
  memory::store(rows_[row].since_ns, now_ns);
  memory::store(rows_[row].state, static_cast<std::uint32_t>(state));
}

void TableStatisticsPage::publish_pull(std::size_t row, std::uint64_t now_ns) noexcept {
  memory::store(header_->pulls, header_->pulls + 1);
  memory::store(rows_[row].refreshed_ns, now_ns);
}

}  // namespace dunlin

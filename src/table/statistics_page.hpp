#pragma once

#include <cstddef>
#include <cstdint>

#include <dunlin/fabric.hpp>
#include <dunlin/table/core.hpp>

#include "table/statistics_page_format.hpp"

namespace dunlin {

/// A table's view of itself in published memory (statistics_page_format.hpp).
class PredicateStatisticsPage {
 public:
  /// `memory` is zeroed and has total_bytes(rows).
  PredicateStatisticsPage(std::byte* memory, std::size_t rows) noexcept;

  /// Gives the predicate a slot, and its counter a place there, if one is free.
  void publish(Predicate& predicate, std::uint64_t pass) noexcept;
  void withdraw(Predicate& predicate) noexcept;

 protected:
  statistics_page::Header* header_;
  statistics_page::Row* rows_;
  statistics_page::PredicateSlot* slots_;
  std::uint64_t predicates_ = 0;
};

class TableStatisticsPage : public PredicateStatisticsPage {
 public:
  TableStatisticsPage(Fabric& fabric, const std::string& table, const Layout& layout,
                      std::size_t stride_bytes, const TableOptions& options, std::size_t my_row);

  [[nodiscard]] std::uint64_t* passes() noexcept { return &header_->passes; }
  void publish_state(std::size_t row, RowState state, std::uint64_t now_ns) noexcept;
  void publish_pushes(std::uint64_t pushes, std::uint64_t now_ns) noexcept {
    memory::store(header_->pushes, pushes);
    memory::store(rows_[my_row_].refreshed_ns, now_ns);
  }
  void publish_pull(std::size_t row, std::uint64_t now_ns) noexcept;

 private:
  TableStatisticsPage(Region region, std::size_t rows) noexcept;

  Region region_;
  std::size_t my_row_ = 0;
};

}  // namespace dunlin

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <dunlin/table/core.hpp>

#include "fabric/counters/counters.hpp"

namespace dunlin {

/// What a table shows to observers: its passes and refreshes, the state in which it sees each row,
/// and its predicates.
class TableCounters {
 public:
  TableCounters(Fabric& fabric, const std::string& table, std::uint64_t generation,
                std::size_t rows, std::size_t my_row);

  [[nodiscard]] std::uint64_t& passes_word() noexcept { return passes_.word(); }
  void show_state(std::size_t row, RowState state, std::uint64_t now_ns) noexcept {
    memory::store(since_ns_[row], now_ns);
    memory::store(states_[row], static_cast<std::uint64_t>(state));
  }
  void count_push(std::uint64_t now_ns) noexcept {
    ++pushes_;
    memory::store(refreshed_ns_[my_row_], now_ns);
  }
  void count_pull(std::size_t row, std::uint64_t now_ns) noexcept {
    ++pulls_;
    memory::store(refreshed_ns_[row], now_ns);
  }
  /// Gives the predicate a counter of its firings, unless kMaxPublishedPredicates have one.
  void show(Predicate& predicate);
  void hide(Predicate& predicate) noexcept;

 private:
  CounterPages& pages_;
  const std::string labels_;
  const std::size_t my_row_;
  std::size_t shown_ = 0;  // how many predicates have a counter
  CounterSet all_;
  SharedCounter passes_ = all_.add("table.passes");
  SharedCounter pushes_ = all_.add("table.pushes");
  SharedCounter pulls_ = all_.add("table.pulls");
  SharedCounter made_ns_ = all_.add_level("table.made_ns", CounterUnit::nanoseconds);
  SharedCounter predicates_ = all_.add_level("table.predicates");  // shown or not
  std::span<std::uint64_t> states_;                                // by row: RowState
  std::span<std::uint64_t> since_ns_;      // by row: when it took this state
  std::span<std::uint64_t> refreshed_ns_;  // own row: last push; others: last pull, or 0
};

}  // namespace dunlin

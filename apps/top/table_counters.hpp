#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/table/core.hpp>
#include <dunlin/table/predicate.hpp>

#include "top/counter.hpp"
#include "top/counters.hpp"

/// What a member's counters say of a table and its predicates.
namespace dunlin::top {

struct RowStatus {
  Rank rank = 0;
  RowState state = RowState::waiting;
  std::uint64_t since_ns = 0;      // when it took this state
  std::uint64_t refreshed_ns = 0;  // own row: last push; others: last pull; 0: never
};

struct PredicateSample {
  std::uint64_t id = 0;
  std::string name = {};
  PredicateKind kind = PredicateKind::recurrent;
  std::uint64_t triggers = 0;
  std::uint64_t first_pass = 0;
  Counter evaluations = {};
  Counter firings = {};
};

struct TableSample {
  std::uint64_t made_ns = 0;  // 0: not known
  std::uint64_t predicates_registered = 0;
  Counter passes = {};
  Counter pushes = {};
  Counter pulls = {};
  std::vector<RowStatus> rows = {};
  std::vector<PredicateSample> predicates = {};

  void compare(const TableSample& before, double seconds);
};

/// `counters`: of the table at one member; `ranks`: by row. Nothing if there are none.
[[nodiscard]] std::optional<TableSample> read_table_counters(
    std::span<const CounterView* const> counters, const std::vector<Rank>& ranks);

[[nodiscard]] std::string_view describe(PredicateKind kind);

}  // namespace dunlin::top

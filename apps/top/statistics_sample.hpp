#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/table/core.hpp>
#include <dunlin/table/predicate.hpp>

#include "top/counter.hpp"

/// A table's statistics page (docs/formats/table-statistics.md), read from another process's
/// memory.
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
  std::uint32_t triggers = 0;
  std::uint64_t first_pass = 0;
  Counter evaluations = {};
  Counter firings = {};
};

struct StatisticsSample {
  std::uint64_t taken_ns = 0;  // CLOCK_MONOTONIC
  std::uint32_t my_row = 0;
  Refresh refresh = Refresh::writes;
  std::uint64_t row_bytes = 0;
  std::uint64_t stride_bytes = 0;
  std::uint64_t created_ns = 0;
  std::uint64_t predicates_registered = 0;
  Counter passes = {};
  Counter pushes = {};
  Counter pulls = {};
  std::vector<RowStatus> rows = {};
  std::vector<PredicateSample> predicates = {};
};

/// Nothing if these bytes are no statistics page, or one that contradicts itself. `memory` is
/// 8-byte aligned.
[[nodiscard]] std::optional<StatisticsSample> read_page(std::span<const std::byte> memory);

[[nodiscard]] std::string_view describe(PredicateKind kind);

}  // namespace dunlin::top

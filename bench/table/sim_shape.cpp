#include <numeric>

#include "bench/table/cluster.hpp"
#include "bench/table/experiments.hpp"
#include "bench/table/simulation.hpp"

namespace dunlin::bench {
namespace {

constexpr std::array<RawMode, 2> kModes{RawMode::writes, RawMode::reads};

Refresh refresh_of(RawMode mode) {
  return mode == RawMode::writes ? Refresh::writes : Refresh::reads;
}

std::vector<std::uint32_t> rows_to(std::uint32_t last) {
  std::vector<std::uint32_t> rows(last);
  std::iota(rows.begin(), rows.end(), 1U);
  return rows;
}

/// Detection of the last of `rows` rows, among `nodes`.
Result with_rows(const Effort& effort, const Network& network, RawMode mode, std::uint32_t nodes,
                 std::uint32_t rows) {
  const std::uint32_t times = effort.quick ? 2 : 20;
  const auto simple = over_seeds(effort, [&](std::uint64_t seed) {
    return simple_detection(network.profile, seed, nodes, refresh_of(mode), times);
  });
  auto values = over_seeds(effort, [&](std::uint64_t seed) {
    return mean_round_trip<1>(network.profile, seed,
                              {.nodes = nodes,
                               .watched = rows_to(rows),
                               .answering = {rows},
                               .refresh = refresh_of(mode),
                               .times = times});
  });
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= simple[i];
  Result result{
      .name = "complexity",
      .params = {{"refresh", mode_name(mode)}, {"nodes", double(nodes)}, {"rows", double(rows)}},
      .unit = "ns"};
  compare(result, values, "its simplest predicate", simple);
  return result;
}

std::vector<Result> by_complexity(const Effort& effort) {
  const Network network(effort, kPublishedNetwork);
  std::vector<Result> results;
  for (const RawMode mode : kModes) {
    for (const std::uint32_t nodes : {5U, 15U, 29U}) {
      for (std::uint32_t rows = 1; rows < nodes - 1; rows *= 2) {
        results.push_back(with_rows(effort, network, mode, nodes, rows));
      }
      results.push_back(with_rows(effort, network, mode, nodes, nodes - 1));
    }
  }
  return results;
}

/// All entries of all rows are watched; the last entry of the last row changes.
template <std::size_t N>
void with_row_of(const Effort& effort, const Network& network, RawMode mode, std::uint32_t nodes,
                 std::vector<Result>& results) {
  const std::uint32_t times = effort.quick ? 2 : 10;
  const auto simple = over_seeds(effort, [&](std::uint64_t seed) {
    return simple_detection(network.profile, seed, nodes, refresh_of(mode), times);
  });
  auto values = over_seeds(effort, [&](std::uint64_t seed) {
    return mean_round_trip<N>(network.profile, seed,
                              {.nodes = nodes,
                               .watched = rows_to(nodes - 1),
                               .answering = {nodes - 1},
                               .refresh = refresh_of(mode),
                               .times = times});
  });
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= simple[i];
  results.push_back({.name = "row-size",
                     .params = {{"refresh", mode_name(mode)},
                                {"nodes", double(nodes)},
                                {"bytes", double{N * sizeof(std::int32_t)}}},
                     .unit = "ns"});
  compare(results.back(), values, "its simplest predicate", simple);
}

std::vector<Result> by_row_size(const Effort& effort) {
  const Network network(effort, kPublishedNetwork);
  std::vector<Result> results;
  for (const RawMode mode : kModes) {
    for (const std::uint32_t nodes : {2U, 8U, 16U}) {
      with_row_of<1>(effort, network, mode, nodes, results);
      with_row_of<16>(effort, network, mode, nodes, results);
      with_row_of<128>(effort, network, mode, nodes, results);
      with_row_of<1024>(effort, network, mode, nodes, results);
    }
  }
  return results;
}

}  // namespace

Experiment simulated_complexity() {
  return {.name = "complexity",
          .title = "detection by the rows that the predicate reads, among 5, 15 and 29 nodes",
          .fabric = "sim",
          .x = "rows",
          .run = by_complexity};
}

Experiment simulated_row_size() {
  return {.name = "row-size",
          .title = "detection by the size of the row, all of which is pushed and watched",
          .fabric = "sim",
          .x = "bytes",
          .run = by_row_size};
}

}  // namespace dunlin::bench

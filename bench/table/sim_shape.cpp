#include "bench/table/cluster.hpp"
#include "bench/table/experiments.hpp"
#include "bench/table/nodes.hpp"

namespace dunlin::bench {
namespace {

/// Detection of the last of `rows` rows, among `nodes`.
Result with_rows(const Effort& effort, const Network& network, Refresh refresh, std::uint32_t nodes,
                 std::uint32_t rows) {
  return beyond_the_simplest<1>(
      effort, network,
      {{"refresh", refresh_name(refresh)}, {"nodes", double(nodes)}, {"rows", double(rows)}},
      {.nodes = nodes,
       .watched = rows_to(rows),
       .answering = {rows},
       .refresh = refresh,
       .times = effort.quick ? 2U : 20U});
}

std::vector<Result> by_complexity(const Effort& effort) {
  const Network network(effort, kPublishedNetwork);
  std::vector<Result> results;
  for (const Refresh refresh : kBothWays) {
    for (const std::uint32_t nodes : {5U, 15U, 29U}) {
      for (std::uint32_t rows = 1; rows < nodes - 1; rows *= 2) {
        results.push_back(with_rows(effort, network, refresh, nodes, rows));
      }
      results.push_back(with_rows(effort, network, refresh, nodes, nodes - 1));
    }
  }
  return results;
}

/// All entries of all rows are watched; the last entry of the last row changes.
template <std::size_t N>
Result with_row_of(const Effort& effort, const Network& network, Refresh refresh,
                   std::uint32_t nodes) {
  return beyond_the_simplest<N>(effort, network,
                                {{"refresh", refresh_name(refresh)},
                                 {"nodes", double(nodes)},
                                 {"bytes", double{N * sizeof(std::int32_t)}}},
                                {.nodes = nodes,
                                 .watched = rows_to(nodes - 1),
                                 .answering = {nodes - 1},
                                 .refresh = refresh,
                                 .times = effort.quick ? 2U : 10U});
}

std::vector<Result> by_row_size(const Effort& effort) {
  const Network network(effort, kPublishedNetwork);
  std::vector<Result> results;
  for (const Refresh refresh : kBothWays) {
    for (const std::uint32_t nodes : {2U, 8U, 16U}) {
      results.push_back(with_row_of<1>(effort, network, refresh, nodes));
      results.push_back(with_row_of<16>(effort, network, refresh, nodes));
      results.push_back(with_row_of<128>(effort, network, refresh, nodes));
      results.push_back(with_row_of<1024>(effort, network, refresh, nodes));
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

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/run.hpp>
#include <dunlin/table.hpp>

#include "support/fresh_group.hpp"
#include "support/node_backend.hpp"

namespace dunlin::test {

/// Nodes that are threads with a table each, so that the thread sanitizer sees both sides of every
/// race. All stay, and poll, until the last one's body has ended.
template <class Row>
void run_nodes(const NodeBackend& backend, std::uint32_t nodes, const TableOptions& options,
               const std::function<void(Table<Row>&)>& body) {
  const std::string group = fresh_group();
  std::atomic<std::uint32_t> done{0};
  std::vector<std::jthread> threads;
  for (Rank rank = 0; rank < nodes; ++rank) {
    threads.emplace_back([&, rank] {
      const auto fabric = backend.join({.group = group, .nodes = nodes, .rank = rank});
      Table<Row> table(fabric, options);
      EXPECT_TRUE(run_until(
          table, [&] { return table.connected(); }, kPatienceMs));
      body(table);
      ++done;
      EXPECT_TRUE(
          run_until(table, [&] { return done == nodes; }, kPatienceMs, {.wait = Wait::spin}));
    });
  }
}

}  // namespace dunlin::test

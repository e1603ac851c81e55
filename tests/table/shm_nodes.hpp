#pragma once

#include <barrier>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/shm.hpp>
#include <dunlin/run.hpp>
#include <dunlin/table.hpp>

#include "fabric/shm_group.hpp"

namespace dunlin::test {

/// How long a test waits before it calls something hung; no figure that is hoped for.
inline constexpr std::uint32_t kPatienceMs = 120'000;

inline shm::JoinOptions host_group(const std::string& group, std::uint32_t nodes, Rank rank) {
  return {.group = group,
          .members = nodes,
          .rank = rank,
          .timeout_ms = kPatienceMs,
          .silence_timeout_ms = 0};  // a sanitized node on a busy processor may be silent for long
}

/// Nodes of this host, each a thread with a table, so that the thread sanitizer sees both sides of
/// every race. All stay until the last one's body has ended.
template <class Row>
void run_nodes(std::uint32_t nodes, const TableOptions& options,
               const std::function<void(Table<Row>&)>& body) {
  const std::string group = fresh_group();
  std::barrier<> everyone_is_done(nodes);
  std::vector<std::jthread> threads;
  for (Rank rank = 0; rank < nodes; ++rank) {
    threads.emplace_back([&, rank] {
      const auto fabric = shm::join(host_group(group, nodes, rank));
      Table<Row> table(fabric, options);
      EXPECT_TRUE(run_until(
          table, [&] { return table.connected(); }, kPatienceMs));
      body(table);
      everyone_is_done.arrive_and_wait();
    });
  }
}

}  // namespace dunlin::test

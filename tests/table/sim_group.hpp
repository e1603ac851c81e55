#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/table.hpp>

#include "support/errors.hpp"

namespace dunlin::test {

/// A network that is unkind within the rules: latencies vary, lines of a write land in any order,
/// its NICs are slow and their queues short.
inline sim::Profile rough_network() {
  sim::Profile rough = sim::profile("ideal");
  rough.jitter = 0.9;
  rough.ordered_placement = false;
  rough.bandwidth_bytes_per_ns = 1;
  rough.nic_gap_ns = 100;
  rough.post_ns = 10;
  rough.post_batched_ns = 5;
  return rough;
}

/// Simulated nodes, each with a table.
template <class Row>
class SimGroup {
 public:
  explicit SimGroup(std::uint32_t nodes, const sim::Profile& profile = sim::profile("ideal"),
                    std::uint64_t seed = 1)
      : world(profile, nodes, seed), tables_(nodes) {}

  /// Makes one node's part of the table, which its program then polls.
  Table<Row>& make(Rank node, const TableOptions& options = {}) {
    tables_[node] = std::make_unique<Table<Row>>(world.fabric(node), options);
    world.attach(node, [this, node] { return tables_[node] ? tables_[node]->poll() : 0; });
    return *tables_[node];
  }
  void make_all(const TableOptions& options = {}) {
    for (Rank r = 0; r < world.size(); ++r) make(r, options);
    EXPECT_TRUE(run_until([this] { return connected(); }));
    settle();
  }
  void destroy(Rank node) {
    world.detach_all(node);
    tables_[node].reset();
  }
  Table<Row>& operator[](Rank node) { return *tables_[node]; }

  [[nodiscard]] bool connected() const {
    for (const auto& table : tables_) {
      if (table && !table->connected()) return false;
    }
    return true;
  }
  bool run_until(const std::function<bool()>& condition) {
    return world.run_until(condition, 100'000'000);
  }
  /// Lets everything that is under way arrive, and be noticed.
  void settle() { world.run_for(5'000'000); }

  sim::World world;

 private:
  std::vector<std::unique_ptr<Table<Row>>> tables_;
};

}  // namespace dunlin::test

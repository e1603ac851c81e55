#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "support/policies.hpp"
#include "support/process.hpp"
#include "support/rounds.hpp"
#include "table/nodes.hpp"

/// All nodes count in step, the way a control loop would: whatever the waiting policy, and whether
/// or not there is a processor for each.
namespace dunlin {
namespace {

using test::kPatienceMs;
using test::NodeBackend;
using test::Parent;
using test::Process;
using test::run_nodes;

struct Row {
  Cell<std::uint64_t> step;
};

const std::uint64_t kSteps = test::rounds(300);

/// Counts to kSteps; returns what went wrong, or nothing.
std::string count(Table<Row>& table, Wait wait) {
  std::string fault;
  table
      .when([](const Table<Row>& t) {
        const std::uint64_t mine = t.mine().step;
        for (std::size_t i = 0; i < t.size(); ++i) {
          if (t[i].step < mine) return false;
        }
        return mine < kSteps;
      })
      .recurrent([&](Table<Row>& t) {
        const std::uint64_t mine = t.mine().step;
        for (std::size_t i = 0; i < t.size(); ++i) {
          if (t[i].step > mine + 1) fault = "row " + std::to_string(i) + " ran ahead";
        }
        t.mine().step = mine + 1;
        t.push(&Row::step);
      });
  const auto all_there = [&] { return (min(&Row::step) == kSteps)(table); };
  if (!run_until(table, all_there, kPatienceMs, {.wait = wait})) {
    fault = "stuck at " + std::to_string(table.mine().step);
  }
  return fault;
}

struct Counting : testing::TestWithParam<std::tuple<NodeBackend, Wait, std::uint32_t>> {
  void SetUp() override { DUNLIN_SKIP_WITHOUT(backend); }
  const NodeBackend backend = std::get<0>(GetParam());
  const Wait wait = std::get<1>(GetParam());
  const std::uint32_t nodes = std::get<2>(GetParam());
};

INSTANTIATE_TEST_SUITE_P(On, Counting,
                         testing::Combine(testing::ValuesIn(test::backends()),
                                          testing::ValuesIn(test::kPolicies),
                                          testing::Values(2U, 6U)),
                         [](const auto& of) {
                           return std::get<0>(of.param).name + "_" +
                                  test::name_of(std::get<1>(of.param)) +
                                  std::to_string(std::get<2>(of.param)) + "nodes";
                         });

TEST_P(Counting, InStepAsThreads) {
  run_nodes<Row>(backend, nodes, {}, [&](Table<Row>& table) { EXPECT_EQ(count(table, wait), ""); });
}

TEST_P(Counting, InStepAsProcesses) {
  const std::string group = test::fresh_group();
  std::vector<Process> processes;
  for (Rank rank = 0; rank < nodes; ++rank) {
    processes.emplace_back([&, rank](Parent& parent) {
      const auto fabric = backend.join({.group = group, .nodes = nodes, .rank = rank});
      Table<Row> table(fabric);
      parent.send_line("counted: " + count(table, wait));
      return parent.receive_line() == "go" ? 0 : 1;
    });
  }
  for (Process& process : processes) EXPECT_EQ(process.receive_line(), "counted: ");
  for (Process& process : processes) process.send_line("go");
  for (Process& process : processes) EXPECT_EQ(process.exit_code(), 0);
}

}  // namespace
}  // namespace dunlin

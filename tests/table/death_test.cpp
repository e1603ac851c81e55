#include <csignal>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/process.hpp"
#include "table/nodes.hpp"
#include "table/witness.hpp"

/// Processes with tables that are killed, or stopped, while they write.
namespace dunlin {
namespace {

using test::Columns;
using test::fresh_group;
using test::kPatienceMs;
using test::NodeBackend;
using test::Parent;
using test::Process;
using test::Witness;
using test::WitnessedRow;
using test::write_step;

/// What the survivors go on with.
struct Next {
  Cell<std::uint64_t> step;
};

/// Writes and pushes until it is killed.
int write_for_ever(Table<WitnessedRow>& table) {
  for (std::uint64_t n = 1;; ++n) {
    write_step(table.mine(), n);
    table.push();
    table.poll();
  }
}

/// Watches row 2 until it is frozen, then counts to 100 in step with the other survivor, in a new
/// table of another row type. Returns what went wrong, or nothing.
std::string survive(Table<WitnessedRow>& table, Columns columns,
                    const std::function<void(std::uint64_t)>& seen) {
  std::vector<std::string> upcalls;
  table.on_failure([&](auto&, std::size_t row, std::string_view why) {
    upcalls.push_back(std::to_string(row) + ": " + std::string(why));
  });
  Witness witness(columns);
  const auto frozen = [&] {
    witness.look(table[2]);
    seen(table[2].last);
    return !upcalls.empty() || testing::Test::HasFatalFailure();
  };
  if (!run_until(table, frozen, kPatienceMs)) return "no upcall";
  if (upcalls.size() != 1 || !upcalls[0].starts_with("2: ")) return "upcall " + upcalls[0];
  if (table.alive(2) || table.state(2) != RowState::failed) return "not frozen";
  const std::uint64_t last = table[2].last;

  Table<Next> next(table.fabric(), {.name = "next", .members = {0, 1}});
  next.when([](const auto& t) { return t.mine().step <= t[1 - t.my_row()].step; })
      .recurrent([](auto& t) {
        if (t.mine().step < 100) ++t.mine().step;
        t.push(&Next::step);
      });
  if (!run_until(
          next, [&] { return next[0].step == 100 && next[1].step == 100; }, kPatienceMs)) {
    return "the next table is stuck";
  }
  witness.look(table[2]);
  return table[2].last == last ? "" : "the frozen row changed";
}

struct Death : testing::TestWithParam<std::tuple<NodeBackend, Refresh>> {
  void SetUp() override { DUNLIN_SKIP_WITHOUT(backend); }
  [[nodiscard]] TableOptions options() const { return {.refresh = refresh}; }
  [[nodiscard]] Process node(const std::string& group, Rank rank,
                             std::function<int(Table<WitnessedRow>&, Parent&)> body) const {
    return Process([=, this](Parent& parent) {
      const auto fabric = backend.join({.group = group, .nodes = 3, .rank = rank});
      Table<WitnessedRow> table(fabric, options());
      if (!run_until(
              table, [&] { return table.connected(); }, kPatienceMs))
        return 1;
      return body(table, parent);
    });
  }
  const NodeBackend backend = std::get<0>(GetParam());
  const Refresh refresh = std::get<1>(GetParam());
  const Columns columns = refresh == Refresh::writes ? Columns::ordered : Columns::unordered;
};

INSTANTIATE_TEST_SUITE_P(On, Death,
                         testing::Combine(testing::ValuesIn(test::backends()),
                                          testing::Values(Refresh::writes, Refresh::reads)),
                         [](const auto& of) {
                           const bool writes = std::get<1>(of.param) == Refresh::writes;
                           return std::get<0>(of.param).name + (writes ? "_writes" : "_reads");
                         });

TEST_P(Death, InMidWriteFreezesAWholeRowAndTheOthersGoOn) {
  std::minstd_rand random(11);
  for (int round = 0; round < 10; ++round) {
    const std::string group = fresh_group();
    const std::uint64_t enough = 1 + random() % 1'000;
    const auto survivor = [&](Rank rank, const std::function<void(std::uint64_t, Parent&)>& seen) {
      return node(group, rank, [this, seen](Table<WitnessedRow>& table, Parent& parent) {
        const std::string fault =
            survive(table, columns, [&](std::uint64_t n) { seen(n, parent); });
        parent.send_line("survived: " + fault);
        return parent.receive_line() == "go" && fault.empty() && !testing::Test::HasFailure() ? 0
                                                                                              : 1;
      });
    };
    std::vector<Process> survivors;
    survivors.push_back(
        survivor(0, [enough, told = false](std::uint64_t n, Parent& parent) mutable {
          if (n >= enough && !std::exchange(told, true)) parent.send_line("enough");
        }));
    survivors.push_back(survivor(1, [](std::uint64_t, Parent&) {}));
    Process victim =
        node(group, 2, [](Table<WitnessedRow>& table, Parent&) { return write_for_ever(table); });
    EXPECT_EQ(survivors[0].receive_line(), "enough");
    victim.signal(SIGKILL);
    for (Process& process : survivors) EXPECT_EQ(process.receive_line(), "survived: ");
    for (Process& process : survivors) process.send_line("go");
    for (Process& process : survivors) EXPECT_EQ(process.exit_code(), 0);
  }
}

struct Silence : test::OnBackends {};

DUNLIN_RUN_ON(test::backends(), Silence);

TEST_P(Silence, OfAStoppedNodeFreezesItsRowAlsoWhenItGoesOn) {
  const std::string group = fresh_group();
  const auto impatient = [&](Rank rank) {
    return GetParam().join({.group = group,
                            .nodes = 2,
                            .rank = rank,
                            .silence_timeout_ms = rank == 0 ? GetParam().silence_ms : 0U});
  };
  Process sleeper([&](Parent& parent) {
    const auto fabric = impatient(1);
    Table<WitnessedRow> table(fabric);
    if (!run_until(
            table, [&] { return table.connected(); }, kPatienceMs))
      return 1;
    std::uint64_t n = 1;
    write_step(table.mine(), n);
    Completion placed;
    table.push(placed);
    while (!placed.finished()) table.poll();
    parent.send_line("stop me");
    raise(SIGSTOP);
    for (; n < 100; ++n) {
      write_step(table.mine(), n + 1);
      table.push();
      fabric->poll();
    }
    parent.send_line("pushed");
    return 0;
  });
  const auto fabric = impatient(0);
  Table<WitnessedRow> table(fabric);
  EXPECT_TRUE(run_until(
      table, [&] { return table[1].last == 1; }, kPatienceMs));
  EXPECT_EQ(sleeper.receive_line(), "stop me");
  EXPECT_TRUE(run_until(
      table, [&] { return !table.alive(1); }, kPatienceMs));
  EXPECT_EQ(table.state(1), RowState::failed);
  sleeper.signal(SIGCONT);
  EXPECT_EQ(sleeper.receive_line(), "pushed");
  table.poll();
  Witness witness;
  witness.look(table[1]);
  EXPECT_TRUE(witness.has_seen(1)) << "what the zombie wrote got through";
  EXPECT_EQ(sleeper.exit_code(), 0);
}

}  // namespace
}  // namespace dunlin

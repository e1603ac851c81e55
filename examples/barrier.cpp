// A barrier: nobody starts a round before everybody has finished the one before. Members count
// what they have finished; row 0 lets all pass once the slowest has caught up. Row 0 is fixed: if
// that member dies, nobody takes its place, because a table elects no leader (docs/table.md).
// Start three of it:
//
//     for i in 1 2 3; do ./barrier & done; wait

#include <iostream>

#include <dunlin/join.hpp>
#include <dunlin/run.hpp>
#include <dunlin/table.hpp>

namespace {

constexpr int kRounds = 1'000;
constexpr std::uint32_t kTimeoutMs = 60'000;

struct Row {
  dunlin::Cell<int> finished;
  dunlin::Cell<int> released;  // of row 0 only
};

void release_rounds(dunlin::Table<Row>& table) {
  table.when(dunlin::min(&Row::finished) > dunlin::mine(&Row::released)).recurrent([](auto& t) {
    t.mine().released = t.mine().released + 1;
    t.push(&Row::released);
  });
}

void finish_round(dunlin::Table<Row>& table) {
  table.mine().finished = table.mine().finished + 1;
  table.push(&Row::finished);
}

}  // namespace

int main() try {
  const auto fabric = dunlin::join({.group = "barrier", .members = 3});
  dunlin::Table<Row> table(fabric);
  if (table.my_row() == 0) release_rounds(table);

  bool done = false;
  table.when(dunlin::row(0, &Row::released) >= dunlin::mine(&Row::finished))
      .recurrent([&](auto& t) {
        done = t.mine().finished == kRounds;
        if (!done) finish_round(t);
      });
  if (!dunlin::run_until(
          table, [&] { return done && table.settled(); }, kTimeoutMs))
    return 1;
  std::cout << "node " << table.my_row() << " passed " << kRounds << " rounds\n";
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}

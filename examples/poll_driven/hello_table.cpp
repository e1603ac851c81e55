// The shared state table in one page: every node publishes a value, and acts the moment that all
// values satisfy a condition. Start it twice:
//
//     ./hello_table & ./hello_table

#include <iostream>

#include <dunlin/join.hpp>
#include <dunlin/run.hpp>
#include <dunlin/table.hpp>

namespace {

struct Row {  // one per node; a node writes only its own
  dunlin::Cell<int> step;
  dunlin::Cell<double> load;
};

constexpr std::uint32_t kTimeoutMs = 10'000;

}  // namespace

int main() try {
  const auto fabric = dunlin::join({.group = "hello_table", .members = 2});
  dunlin::Table<Row> table(fabric);

  bool all_here = false;
  table.when(dunlin::all(&Row::step) >= 1).once([&](auto& t) {
    for (std::size_t i = 0; i < t.size(); ++i) {
      std::cout << "node " << t.my_row() << " sees load " << t[i].load << " at node " << i << '\n';
    }
    all_here = true;
  });

  table.mine().load = 0.25 * (fabric->rank() + 1);
  table.mine().step = 1;
  table.push(&Row::load, &Row::step);  // first the data, then what announces it

  // Settled: a node that leaves earlier may leave a slower one without the last push.
  return dunlin::run_until(
             table, [&] { return all_here && table.settled(); }, kTimeoutMs)
             ? 0
             : 1;
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}

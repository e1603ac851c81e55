// The shared state table in one page: every node publishes a value, and acts the moment that all
// values satisfy a condition. Start it twice:
//
//     ./hello_table & ./hello_table

#include <iostream>

#include <dunlin/node.hpp>

namespace {

struct Row {  // one per node; a node writes only its own
  int step;
  double load;
};

}  // namespace

int main() try {
  dunlin::Node node = dunlin::Node::join({.group = "hello_table", .members = 2});
  auto table = node.table<Row>("hello");

  table.update(
      [&](Row& mine) {
        mine.load = 0.25 * (node.rank() + 1);
        mine.step = 1;
      },
      &Row::load, &Row::step);  // first the data, then what announces it
  table.until(dunlin::all(&Row::step) >= 1).get();
  for (const Row& row : table.snapshot())
    std::cout << "node " << node.rank() << " sees a load of " << row.load << '\n';

  // A member that leaves takes its row along, so each stays until the other has looked.
  table.update([](Row& mine) { mine.step = 2; }, &Row::step);
  table.until(dunlin::all(&Row::step) >= 2).get();
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}

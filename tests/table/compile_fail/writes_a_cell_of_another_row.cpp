// expect: a node writes only its own row: table.mine()
#include <array>

#include <dunlin/table.hpp>

struct Row {
  dunlin::Cell<int> step;
  dunlin::Cell<std::array<long, 4>> wide;
  dunlin::Versioned<std::array<long, 40>> config;
  std::array<dunlin::Versioned<int>, 3> several;
};

void use(dunlin::Table<Row>& table) { table[1].step = 1; }

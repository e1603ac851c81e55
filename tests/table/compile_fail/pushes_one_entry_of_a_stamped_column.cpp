// expect: single entries can be pushed of columns whose entries have up to 8 bytes
#include <array>

#include <dunlin/table.hpp>

struct Row {
  dunlin::Cell<int> step;
  dunlin::Cell<std::array<long, 4>> wide;
  dunlin::Versioned<std::array<long, 40>> config;
  std::array<dunlin::Versioned<int>, 3> several;
};

void use(dunlin::Table<Row>& table) { table.push(dunlin::entry(&Row::several, 1)); }

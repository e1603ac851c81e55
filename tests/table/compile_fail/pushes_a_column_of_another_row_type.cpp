// expect: a column of another row type than the table
#include <array>

#include <dunlin/table.hpp>

struct Row {
  dunlin::Cell<int> step;
  dunlin::Cell<std::array<long, 4>> wide;
  dunlin::Versioned<std::array<long, 40>> config;
  std::array<dunlin::Versioned<int>, 3> several;
};
struct Other {
  dunlin::Cell<int> step;
};

void use(dunlin::Table<Row>& table) { table.push(&Other::step); }

// must say: dunlin: single entries can be pushed of columns whose entries have up to 8 bytes
#include <array>

#include <dunlin/table.hpp>

struct Row {
  dunlin::Cell<int> step;
  dunlin::Cell<std::array<long, 4>> wide;
  dunlin::Versioned<std::array<long, 40>> config;
  std::array<dunlin::Cell<int>, 3> several;
  std::array<dunlin::Versioned<int>, 3> versions;
};

void use(dunlin::Table<Row>& table) {
#ifdef MISTAKE
  table.push(dunlin::entry(&Row::versions, 1));
#else
  table.push(dunlin::entry(&Row::several, 1));
#endif
}

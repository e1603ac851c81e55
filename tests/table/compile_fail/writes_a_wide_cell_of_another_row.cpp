// must say: dunlin: a node writes only its own row: table.mine()
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
  table[1].wide = std::array<long, 4>{};
#else
  table.mine().wide = std::array<long, 4>{};
#endif
}

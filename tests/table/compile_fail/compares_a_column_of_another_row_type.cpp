// must say: dunlin: the expression is about a column of another row type than the table's
#include <array>

#include <dunlin/table.hpp>

struct Row {
  dunlin::Cell<int> step;
  dunlin::Cell<std::array<long, 4>> wide;
  dunlin::Versioned<std::array<long, 40>> config;
  std::array<dunlin::Cell<int>, 3> several;
  std::array<dunlin::Versioned<int>, 3> versions;
};
struct Other {
  dunlin::Cell<int> step;
};

void use(dunlin::Table<Row>& table) {
#ifdef MISTAKE
  table.when(dunlin::all(&Other::step) >= 1).once([] {});
#else
  table.when(dunlin::all(&Row::step) >= 1).once([] {});
#endif
}

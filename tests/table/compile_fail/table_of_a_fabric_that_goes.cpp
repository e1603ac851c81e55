// must say: dunlin: a table does not own its fabric
#include <dunlin/join.hpp>
#include <dunlin/table.hpp>

struct Row {
  dunlin::Cell<int> step;
};

void use() {
#ifdef MISTAKE
  dunlin::Table<Row> table(dunlin::join({.group = "rack7", .members = 2}));
#else
  const auto fabric = dunlin::join({.group = "rack7", .members = 2});
  dunlin::Table<Row> table(fabric);
#endif
}

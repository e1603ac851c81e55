// must say: dunlin: a table does not own its fabric
#include <dunlin/fabric/shm.hpp>
#include <dunlin/table.hpp>

struct Row {
  dunlin::Cell<int> step;
};

void use() {
#ifdef MISTAKE
  dunlin::Table<Row> table(dunlin::shm::join({.group = "rack7", .members = 2}));
#else
  const auto fabric = dunlin::shm::join({.group = "rack7", .members = 2});
  dunlin::Table<Row> table(fabric);
#endif
}

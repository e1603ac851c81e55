// must say: dunlin: a single value of a list cannot be pushed: a push sends what was appended
#include <array>

#include <dunlin/table.hpp>

struct Row {
  dunlin::Cell<int> step;
  std::array<dunlin::Versioned<int>, 3> versions;
  dunlin::List<int, 4> events;
};

void use(dunlin::Table<Row>& table) {
#ifdef MISTAKE
  table.push(dunlin::entry(&Row::events, 1));
#else
  table.push(dunlin::entry(&Row::versions, 1));
#endif
}

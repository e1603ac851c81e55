// must say: dunlin: a member of a row cannot be a C array
#include <array>

#include <dunlin/table/layout.hpp>

struct Row {
  dunlin::Cell<int> step;
#ifdef MISTAKE
  dunlin::Cell<double> cost[4];
#else
  std::array<dunlin::Cell<double>, 4> cost;
#endif
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

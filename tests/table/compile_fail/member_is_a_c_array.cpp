// expect: a member of a row cannot be a C array
#include <dunlin/table.hpp>

struct Row {
  dunlin::Cell<int> step;
  dunlin::Cell<double> cost[4];
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

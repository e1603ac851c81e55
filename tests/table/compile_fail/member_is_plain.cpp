// expect: every member of a row must be a dunlin::Cell
#include <dunlin/table.hpp>

struct Row {
  dunlin::Cell<int> step;
  int plain;
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

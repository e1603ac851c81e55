// expect: a member of a row cannot be a pointer
#include <dunlin/table.hpp>

struct Row {
  dunlin::Cell<int> step;
  int* pointer;
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

// expect: a member of a row cannot be a reference
#include <dunlin/table.hpp>

struct Row {
  dunlin::Cell<int> step;
  int& reference;
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

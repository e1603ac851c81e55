// expect: a member of a row cannot be const
#include <dunlin/table.hpp>

struct Row {
  const dunlin::Cell<int> step;
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

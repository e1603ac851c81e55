// must say: dunlin: a row needs at least one column
#include <dunlin/table/layout.hpp>

struct Row {
#ifndef MISTAKE
  dunlin::Cell<int> step;
#endif
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

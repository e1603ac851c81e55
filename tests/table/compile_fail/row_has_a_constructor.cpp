// expect: a row must be a plain struct
#include <dunlin/table.hpp>

struct Row {
  Row() {}
  dunlin::Cell<int> step;
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

// expect: a row cannot have virtual functions
#include <dunlin/table.hpp>

struct Row {
  virtual ~Row() = default;
  dunlin::Cell<int> step;
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

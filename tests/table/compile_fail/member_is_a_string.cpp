// expect: every member of a row must be a dunlin::Cell
#include <string>

#include <dunlin/table.hpp>

struct Row {
  dunlin::Cell<int> step;
  std::string name;
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

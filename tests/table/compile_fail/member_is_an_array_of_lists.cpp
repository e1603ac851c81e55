// expect: every member of a row must be a dunlin::Cell
#include <array>

#include <dunlin/table.hpp>

struct Row {
  std::array<dunlin::List<int, 4>, 2> lists;
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

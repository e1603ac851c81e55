// expect: all members of a row must be in one struct
#include <dunlin/table.hpp>

struct Base {};
struct Row : Base {
  dunlin::Cell<int> step;
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

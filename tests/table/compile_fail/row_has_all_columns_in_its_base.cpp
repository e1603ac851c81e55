// expect: all members of a row must be in one struct
#include <dunlin/table.hpp>

struct Base {
  dunlin::Cell<int> step;
  dunlin::Cell<int> more;
};
struct Row : Base {};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

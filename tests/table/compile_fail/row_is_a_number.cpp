// must say: dunlin: a row must be a struct of dunlin::Cell members
#include <dunlin/table/layout.hpp>

#ifdef MISTAKE
using Row = int;
#else
struct Row {
  dunlin::Cell<int> step;
};
#endif

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

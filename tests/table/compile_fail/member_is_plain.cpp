// must say: dunlin: every member of a row must be a dunlin::Cell
#include <dunlin/table/layout.hpp>

struct Row {
  dunlin::Cell<int> step;
#ifdef MISTAKE
  int plain;  // beside a cell
#else
  dunlin::Cell<int> cell;
#endif
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

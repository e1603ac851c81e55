// must say: dunlin: a member of a row cannot be a pointer
#include <dunlin/table/layout.hpp>

struct Row {
  dunlin::Cell<int> step;
#ifdef MISTAKE
  int* pointer;
#else
  dunlin::Cell<int> index;
#endif
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

// must say: dunlin: a member of a row cannot be a reference
#include <dunlin/table/layout.hpp>

struct Row {
  dunlin::Cell<int> step;
#ifdef MISTAKE
  int& reference;
#else
  dunlin::Cell<int> value;
#endif
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

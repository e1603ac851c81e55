// must say: dunlin: a member of a row cannot be const
#include <dunlin/table/layout.hpp>

struct Row {
  dunlin::Cell<int> step;
#ifdef MISTAKE
  const dunlin::Cell<int> constant;
#else
  dunlin::Cell<int> cell;
#endif
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

// must say: dunlin: a member of a row cannot be a pointer
#include <dunlin/table/layout.hpp>

struct Row {
  int step;
#ifdef MISTAKE
  double* load;
#else
  double load;
#endif
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

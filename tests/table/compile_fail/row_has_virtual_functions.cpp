// must say: dunlin: a row cannot have virtual functions
#include <dunlin/table/layout.hpp>

struct Row {
  dunlin::Cell<int> step;
#ifdef MISTAKE
  virtual ~Row() = default;
#endif
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

// must say: dunlin: a row must be a plain struct
#include <dunlin/table/layout.hpp>

struct Row {
  dunlin::Cell<int> step;
#ifdef MISTAKE
 private:
  dunlin::Cell<int> more;
#endif
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

// must say: dunlin: all members of a row must be in one struct
#include <dunlin/table/layout.hpp>

struct Base {
  dunlin::Cell<int> step;
  dunlin::Cell<int> more;
};
#ifdef MISTAKE
struct Row : Base {};
#else
using Row = Base;
#endif

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

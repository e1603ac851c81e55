// must say: dunlin: all members of a row must be in one struct
#include <dunlin/table/layout.hpp>

struct Base {};
#ifdef MISTAKE
struct Row : Base {
#else
struct Row {
#endif
  dunlin::Cell<int> step;
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

// must say: dunlin: a row, and so its members, cannot be aligned to more than a cache line
#include <dunlin/table/layout.hpp>

#ifdef MISTAKE
struct alignas(128) Row {
#else
struct alignas(64) Row {
#endif
  dunlin::Cell<int> step;
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

// must say: dunlin: every member of a row must be a dunlin::Cell
#include <array>

#include <dunlin/table/layout.hpp>

struct Row {
  dunlin::Cell<int> step;
#ifdef MISTAKE
  std::array<dunlin::List<int, 4>, 2> lists;
#else
  std::array<dunlin::Versioned<int>, 2> values;
#endif
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

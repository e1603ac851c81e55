// must say: dunlin: every member of a row must be a dunlin::Cell
#include <array>
#include <string>

#include <dunlin/table/layout.hpp>

struct Row {
  dunlin::Cell<int> step;
#ifdef MISTAKE
  std::string name;
#else
  dunlin::Cell<std::array<char, 16>> name;
#endif
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

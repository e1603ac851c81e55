// must say: dunlin: the entry of a Cell must fit in a cache line (64 bytes)
#include <array>

#include <dunlin/table/layout.hpp>

struct Row {
  int step;
#ifdef MISTAKE
  std::array<char, 65> name;
#else
  std::array<char, 64> name;
#endif
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

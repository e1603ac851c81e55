// must say: dunlin: a member of a row cannot be a C array
#include <array>
#include <ctime>

#include <dunlin/table/layout.hpp>

struct Row {
  int step;
#ifdef MISTAKE
  std::timespec stamps[2];
#else
  std::array<std::timespec, 2> stamps;
#endif
  double load;
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

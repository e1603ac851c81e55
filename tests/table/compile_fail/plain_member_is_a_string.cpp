// must say: dunlin: an entry of a row must be trivially copyable
#include <array>
#include <string>

#include <dunlin/table/layout.hpp>

struct Row {
  int step;
#ifdef MISTAKE
  std::string name;
#else
  std::array<char, 16> name;
#endif
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

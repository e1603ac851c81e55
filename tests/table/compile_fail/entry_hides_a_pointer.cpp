// must say: dunlin: an entry of a row cannot be or hold a pointer
#include <array>

#include <dunlin/table/cell.hpp>

struct Inner {
  long id;
#ifdef MISTAKE
  const char* name;
#else
  std::array<char, 16> name;
#endif
};
struct Outer {
  int a;
  Inner inner;
  int b;
};
dunlin::Cell<Outer> cell;

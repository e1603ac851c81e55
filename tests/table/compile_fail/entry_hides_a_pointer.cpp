// expect: an entry of a row cannot be or hold a pointer
#include <dunlin/table.hpp>

struct Inner {
  long id;
  const char* name;
};
struct Outer {
  int a;
  Inner inner;
  int b;
};
dunlin::Cell<Outer> cell;

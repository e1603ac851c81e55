// expect: an entry of a row cannot be or hold a pointer
#include <dunlin/table.hpp>

struct Thing {
  int x;
};
dunlin::Cell<int Thing::*> cell;

// must say: dunlin: an entry of a row cannot be or hold a pointer
#include <dunlin/table/cell.hpp>

struct Thing {
  int x;
};
#ifdef MISTAKE
dunlin::Cell<int Thing::*> cell;
#else
dunlin::Cell<Thing> cell;
#endif

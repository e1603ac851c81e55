// must say: dunlin: an entry of a row must be default constructible
#include <dunlin/table/cell.hpp>

struct Thing {
#ifdef MISTAKE
  explicit Thing(int);
#endif
  int value;
};
dunlin::Cell<Thing> cell;

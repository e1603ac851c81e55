// expect: an entry of a row must be default constructible
#include <dunlin/table.hpp>

struct Thing {
  explicit Thing(int);
  int value;
};
dunlin::Cell<Thing> cell;

// must say: dunlin: an entry of a row cannot be or hold a pointer
#include <dunlin/table/cell.hpp>

union Value {
#ifdef MISTAKE
  const char* text;
#endif
  long number;
};
dunlin::Cell<Value> cell;

// expect: an entry of a row cannot be or hold a pointer
#include <dunlin/table.hpp>

dunlin::Cell<int*> cell;

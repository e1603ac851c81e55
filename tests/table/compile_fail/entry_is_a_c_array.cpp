// expect: an entry of a row cannot be a C array
#include <dunlin/table.hpp>

dunlin::Cell<int[4]> cell;

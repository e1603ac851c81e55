// expect: an entry of a row cannot be const
#include <dunlin/table.hpp>

dunlin::Cell<const int> cell;

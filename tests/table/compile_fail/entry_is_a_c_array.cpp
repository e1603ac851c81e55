// must say: dunlin: an entry of a row cannot be a C array
#include <array>

#include <dunlin/table/cell.hpp>

#ifdef MISTAKE
dunlin::Cell<int[4]> cell;
#else
std::array<dunlin::Cell<int>, 4> cells;
#endif

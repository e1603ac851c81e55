// must say: dunlin: an entry of a row cannot be const
#include <dunlin/table/cell.hpp>

#ifdef MISTAKE
dunlin::Cell<const int> cell;
#else
const dunlin::Cell<int> cell;
#endif

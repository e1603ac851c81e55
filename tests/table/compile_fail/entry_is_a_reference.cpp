// must say: dunlin: an entry of a row cannot be a reference
#include <dunlin/table/cell.hpp>

#ifdef MISTAKE
dunlin::Cell<int&> cell;
#else
dunlin::Cell<int> cell;
#endif

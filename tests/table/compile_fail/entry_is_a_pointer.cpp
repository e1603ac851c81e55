// must say: dunlin: an entry of a row cannot be or hold a pointer
#include <dunlin/table/cell.hpp>

#ifdef MISTAKE
dunlin::Cell<int*> cell;
#else
dunlin::Cell<int> cell;
#endif

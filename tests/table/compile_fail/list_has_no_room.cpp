// must say: dunlin: a List needs room for at least one value
#include <dunlin/table/cell.hpp>

#ifdef MISTAKE
dunlin::List<int, 0> list;
#else
dunlin::List<int, 1> list;
#endif

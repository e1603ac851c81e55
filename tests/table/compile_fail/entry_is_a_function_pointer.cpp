// must say: dunlin: an entry of a row cannot be or hold a pointer
#include <dunlin/table/cell.hpp>

#ifdef MISTAKE
dunlin::List<void (*)(), 4> list;
#else
dunlin::List<int, 4> list;
#endif

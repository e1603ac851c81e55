// must say: dunlin: an entry of a row must be trivially copyable
#include <vector>

#include <dunlin/table/cell.hpp>

#ifdef MISTAKE
dunlin::List<std::vector<int>, 4> list;
#else
dunlin::List<int, 4> list;
#endif

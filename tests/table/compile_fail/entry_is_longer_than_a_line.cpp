// must say: dunlin: the entry of a Cell must fit in a cache line (64 bytes)
#include <array>

#include <dunlin/table/cell.hpp>

#ifdef MISTAKE
dunlin::Cell<std::array<char, 65>> cell;
#else
dunlin::Cell<std::array<char, 64>> cell;
#endif

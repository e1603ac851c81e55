// must say: dunlin: an entry of a row cannot be or hold a pointer
#include <array>
#include <span>

#include <dunlin/table/cell.hpp>

#ifdef MISTAKE
dunlin::Cell<std::span<int>> cell;
#else
dunlin::Cell<std::array<int, 4>> cell;
#endif

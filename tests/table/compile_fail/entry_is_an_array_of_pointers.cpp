// must say: dunlin: an entry of a row cannot be or hold a pointer
#include <array>

#include <dunlin/table/cell.hpp>

#ifdef MISTAKE
dunlin::Versioned<std::array<int*, 4>> versioned;
#else
dunlin::Versioned<std::array<int, 4>> versioned;
#endif

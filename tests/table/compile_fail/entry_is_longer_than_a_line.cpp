// expect: the entry of a Cell must fit in a cache line (64 bytes)
#include <array>

#include <dunlin/table.hpp>

dunlin::Cell<std::array<char, 65>> cell;

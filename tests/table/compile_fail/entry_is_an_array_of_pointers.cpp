// expect: an entry of a row cannot be or hold a pointer
#include <array>

#include <dunlin/table.hpp>

dunlin::Versioned<std::array<int*, 4>> versioned;

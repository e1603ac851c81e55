// must say: dunlin: an entry of a row must be trivially copyable
#include <array>
#include <string>

#include <dunlin/table/cell.hpp>

#ifdef MISTAKE
dunlin::Cell<std::string> cell;
#else
dunlin::Cell<std::array<char, 16>> cell;
#endif

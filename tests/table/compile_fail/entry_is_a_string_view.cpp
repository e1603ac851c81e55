// must say: dunlin: an entry of a row cannot be or hold a pointer
#include <array>
#include <string_view>

#include <dunlin/table/cell.hpp>

#ifdef MISTAKE
dunlin::Cell<std::string_view> cell;
#else
dunlin::Cell<std::array<char, 16>> cell;
#endif

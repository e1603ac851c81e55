// expect: an entry of a row cannot be or hold a pointer
#include <string_view>

#include <dunlin/table.hpp>

dunlin::Cell<std::string_view> cell;

// must say: dunlin: an entry of a row cannot be or hold a pointer
#include <variant>

#include <dunlin/table/cell.hpp>

#ifdef MISTAKE
dunlin::Cell<std::variant<int, const char*>> cell;
#else
dunlin::Cell<std::variant<int, double>> cell;
#endif

// must say: dunlin: an entry of a row cannot be or hold a pointer
#include <optional>

#include <dunlin/table/cell.hpp>

#ifdef MISTAKE
dunlin::Cell<std::optional<int*>> cell;
#else
dunlin::Cell<std::optional<int>> cell;
#endif

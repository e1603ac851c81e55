// expect: a List needs room for at least one value
#include <dunlin/table.hpp>

dunlin::List<int, 0> list;

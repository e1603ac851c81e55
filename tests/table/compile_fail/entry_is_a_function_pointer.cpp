// expect: an entry of a row cannot be or hold a pointer
#include <dunlin/table.hpp>

dunlin::List<void (*)(), 4> list;

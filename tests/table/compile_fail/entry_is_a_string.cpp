// expect: an entry of a row must be trivially copyable
#include <string>

#include <dunlin/table.hpp>

dunlin::Cell<std::string> cell;

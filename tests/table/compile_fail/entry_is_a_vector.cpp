// expect: an entry of a row must be trivially copyable
#include <vector>

#include <dunlin/table.hpp>

dunlin::List<std::vector<int>, 4> list;

// expect: an entry of a row cannot be a reference
#include <dunlin/table.hpp>

dunlin::Cell<int&> cell(*new int);

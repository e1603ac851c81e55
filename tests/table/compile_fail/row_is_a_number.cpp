// expect: a row must be a struct of dunlin::Cell members
#include <dunlin/table.hpp>

using Row = int;

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

// expect: a row needs at least one column
#include <dunlin/table.hpp>

struct Row {};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }

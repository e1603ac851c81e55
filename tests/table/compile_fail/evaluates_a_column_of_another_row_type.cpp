// must say: dunlin: the expression is about a column of another row type than the table's
#include <dunlin/table.hpp>

struct Row {
  int step;
};
struct Other {
  int step;
};

bool use(const dunlin::Snapshot<Row>& copy) {
#ifdef MISTAKE
  return (dunlin::all(&Other::step) >= 1)(copy);
#else
  return (dunlin::all(&Row::step) >= 1)(copy);
#endif
}

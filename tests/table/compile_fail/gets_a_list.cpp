// must say: dunlin: a list has no one value: read table[i].list.at(index)
#include <dunlin/table.hpp>

struct Row {
  dunlin::Cell<int> step;
  dunlin::List<int, 4> events;
};

int use(const dunlin::Table<Row>& table) {
#ifdef MISTAKE
  static_cast<void>(table.get(1, &Row::events));
#endif
  return table.get(1, &Row::step);
}

// must say: assign
#include <dunlin/table.hpp>

struct Row {
  int step;
  double load;
};

void use(dunlin::Table<Row>& table) {
#ifdef MISTAKE
  table[1].step = 1;
#else
  table.mine().step = 1;
#endif
}

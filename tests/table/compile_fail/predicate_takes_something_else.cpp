// must say: dunlin: a predicate is a const function of a constant table that returns bool
#include <array>

#include <dunlin/table.hpp>

struct Row {
  dunlin::Cell<int> step;
  dunlin::Cell<std::array<long, 4>> wide;
  dunlin::Versioned<std::array<long, 40>> config;
  std::array<dunlin::Cell<int>, 3> several;
  std::array<dunlin::Versioned<int>, 3> versions;
};

void use(dunlin::Table<Row>& table) {
#ifdef MISTAKE
  table.when([](int) { return true; }).once([] {});
#else
  table.when([](const auto& t) { return t[0].step == 1; }).once([] {});
#endif
}

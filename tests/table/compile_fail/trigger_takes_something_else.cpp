// must say: dunlin: a trigger is called with the table (auto& t), or with nothing
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
  table.when(dunlin::all(&Row::step) >= 1).once([](int) {});
#else
  table.when(dunlin::all(&Row::step) >= 1).once([](auto& t) { t.push(); }, [] {});
#endif
}

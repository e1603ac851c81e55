// expect: it compiles
#include <array>
#include <cstdint>

#include <dunlin/table.hpp>

/// The control: what the others do wrong, done right.
enum class Mode : std::uint8_t { off, on };
struct Point {
  double x;
  double y;
};
struct Row {
  dunlin::Cell<int> step{7};
  dunlin::Cell<Mode> mode;
  dunlin::Cell<Point> where;
  std::array<std::array<dunlin::Cell<double>, 2>, 3> grid;
  dunlin::Versioned<std::array<Point, 20>> path;
  dunlin::List<Point, 8> events;
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }
void use(dunlin::Table<Row>& table) {
  table.mine().step = 1;
  table.push(&Row::step, &Row::where, dunlin::entry(&Row::grid, 3));
  table.when(dunlin::all(&Row::step) >= dunlin::mine(&Row::step))
      .once([](auto& t) { t.push(); }, [] {});
  table.when([](const auto& t) { return t[0].step == 1; }).recurrent([] {});
}

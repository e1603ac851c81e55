// Three nodes in one process, under a virtual clock: the same tables as on real machines, and a
// crash at a chosen moment. The same seed gives the same run, to the nanosecond.
//
//     ./simulated_crash

#include <array>
#include <iostream>
#include <memory>
#include <string_view>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/table.hpp>

namespace {

struct Row {
  dunlin::Cell<int> heard_of_failures;
};

constexpr std::uint32_t kNodes = 3;
constexpr std::uint64_t kLimitNs = 100'000'000;

}  // namespace

int main() try {
  dunlin::sim::World world(dunlin::sim::profile("ib100"), kNodes, /*seed=*/7);
  std::array<std::unique_ptr<dunlin::Table<Row>>, kNodes> tables;
  for (dunlin::Rank node = 0; node < kNodes; ++node) {
    auto& table = tables[node];
    table = std::make_unique<dunlin::Table<Row>>(world.fabric(node));
    table->on_failure([&world](auto& t, std::size_t row, std::string_view why) {
      std::cout << world.now_ns() << " ns: node " << t.my_row() << " lost node " << row << ": "
                << why << '\n';
      t.mine().heard_of_failures = 1;
      t.push();
    });
    world.attach(node, [&table] { return table->poll(); });
  }

  world.at(5'000, [&] { world.crash(2); });
  const bool told = world.run_until(
      [&] {
        return (*tables[0])[1].heard_of_failures == 1 && (*tables[1])[0].heard_of_failures == 1;
      },
      kLimitNs);
  return told ? 0 : 1;
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}

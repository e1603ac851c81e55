#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "table/sim_group.hpp"
namespace dunlin {
namespace {
struct TwoOperations {  // a line and a word
  std::array<Cell<std::uint64_t>, 9> words;
};
/// The queue holds one row: if each table holds a slot and waits for the other's, neither ends.
TEST(Push, TablesThatShareAQueueAllCatchUp) {
  for (const std::uint32_t tables : {1U, 2U, 3U, 5U}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      sim::Profile narrow = sim::profile("ib100");
      narrow.queue_slots = 2;
      narrow.jitter = seed % 2 == 0 ? 0.9 : 0;
      sim::World world(narrow, 2, seed);
      std::array<std::vector<std::unique_ptr<Table<TwoOperations>>>, 2> made;
      for (Rank node = 0; node < 2; ++node) {
        for (std::uint32_t i = 0; i < tables; ++i)
          made.at(node).push_back(std::make_unique<Table<TwoOperations>>(
              world.fabric(node), TableOptions{.name = "table" + std::to_string(i)}));
        world.attach(node, [&made, node] {
          std::size_t done = 0;
          for (const auto& table : made.at(node)) done += table->poll();
          return done;
        });
      }
      const auto settled = [&] {
        for (const auto& all : made)
          for (const auto& table : all)
            if (!table->connected() || !table->settled()) return false;
        return true;
      };
      EXPECT_TRUE(world.run_until(settled, 10'000'000)) << tables << " tables, seed " << seed;
      for (auto& all : made)
        for (auto& table : all) {
          table->mine().words[8] = 7;
          for (int i = 0; i < 3; ++i) table->push();
        }
      EXPECT_TRUE(world.run_until(settled, 10'000'000)) << tables << " tables, seed " << seed;
      for (auto& all : made) all.clear();
    }
  }
}
}  // namespace
}  // namespace dunlin

#pragma once

#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/fabric/sim.hpp>

namespace dunlin::sim {

/// Costs nothing but what a test sets: so that virtual times can be worked out by hand.
inline Profile plain() { return profile("ideal"); }

/// 1 byte a ns, 1000 ns of latency, a message every 20 ns.
inline Profile ruler() {
  Profile figures = plain();
  figures.bandwidth_bytes_per_ns = 1;
  figures.nic_gap_ns = 20;
  return figures;
}

inline std::vector<std::uint64_t> numbers(std::size_t count) {
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), 1);
  return all;
}

/// Nodes that poll, each with a part of one region that all can reach; at a time of its own choice.
class TestWorld {
 public:
  explicit TestWorld(const Profile& figures, std::uint32_t nodes = 2, std::uint64_t seed = 1,
                     std::size_t bytes = 1 << 17)
      : world(figures, nodes, seed) {
    for (Rank r = 0; r < nodes; ++r) {
      boxes.push_back(world.fabric(r).allocate({.name = "box", .bytes = bytes}));
      world.fabric(r).announce(boxes[r]);
      world.attach(r, [this, r] { return world.fabric(r).poll(); });
    }
    EXPECT_TRUE(world.run_until([&] { return all_connected(); }, 100'000'000));
  }

  [[nodiscard]] bool all_connected() {
    for (Rank r = 0; r < world.size(); ++r) {
      for (Rank peer = 0; peer < world.size(); ++peer) {
        if (!world.fabric(r).connected(peer, id(r))) return false;
      }
    }
    return true;
  }
  [[nodiscard]] RegionId id(Rank r) const { return boxes[r].id(); }
  [[nodiscard]] std::byte* memory(Rank r) const { return boxes[r].memory().data(); }
  [[nodiscard]] std::uint64_t& word(Rank r, std::size_t offset) const {
    return *reinterpret_cast<std::uint64_t*>(memory(r) + offset);
  }
  [[nodiscard]] std::uint64_t load(Rank r, std::size_t offset = 0) const {
    return memory::load(word(r, offset));
  }
  /// Posts outside of all programs, and expects it to be taken.
  void post(Rank from, const Operation& operation) {
    EXPECT_EQ(world.fabric(from).post(operation).refusal, Refusal::none);
  }
  /// Virtual time until the condition holds.
  std::uint64_t time_until(const std::function<bool()>& condition,
                           std::uint64_t limit_ns = 100'000'000) {
    const std::uint64_t before = world.now_ns();
    EXPECT_TRUE(world.run_until(condition, limit_ns));
    return world.now_ns() - before;
  }
  /// Lets all that is under way arrive, and the last rounds of polling end.
  void settle() {
    world.run_until([] { return false; }, 100'000'000);
    world.run_for(1'000);
  }

  World world;
  std::vector<Region> boxes;
};

}  // namespace dunlin::sim

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/store.hpp>

#include "store/stores.hpp"

/// Members that share a store, in the simulator, and may die.
namespace dunlin::test {

class Mortals {
 public:
  explicit Mortals(std::uint32_t members, std::uint32_t homes = 1,
                   const sim::Profile& profile = network(), StoreOptions options = tiny_store())
      : world(profile, members, 1), nodes(members) {
    options.homes = homes;
    for (Rank rank = 0; rank < members; ++rank) {
      Node& node = nodes[rank];
      node.group = std::make_unique<Group>(world.fabric(rank));
      node.members = std::make_unique<GroupMembers>(*node.group);
      node.progress = std::make_unique<remote::Progress>(world.fabric(rank), *node.members);
      node.store = std::make_unique<Store>(*node.progress, options);
      world.attach(rank, [&node] { return node.progress->poll(); });
    }
    world.run_for(1'000'000);
  }
  ~Mortals() {
    for (Node& node : nodes) node.store.reset();
  }
  static StoreOptions tiny_store() {
    StoreOptions options = test::small_store();
    options.memory_bytes = kMinStoreBytes;
    options.expected_keys = 8;
    return options;
  }
  /// So slow that a write is under way for long.
  static sim::Profile network() {
    sim::Profile slow = sim::profile("ib100");
    slow.bandwidth_bytes_per_ns = 0.1;
    return slow;
  }
  /// Lines arrive in any order, too.
  static sim::Profile shuffling() {
    sim::Profile wild = network();
    wild.ordered_placement = false;
    wild.jitter = 0.9;
    return wild;
  }
  Store& at(Rank rank) { return *nodes[rank].store; }
  remote::Status end_of(remote::InFlight& operation) {
    EXPECT_TRUE(world.run_until([&] { return operation.finished(); }, 10'000'000'000))
        << "STO-4, STO-5: hangs\n"
        << states();
    return operation.status();
  }
  std::string states() {
    std::string text;
    for (const Node& node : nodes)
      if (node.store) text += node.store->describe_moves() + "\n";
    return text;
  }
  std::string get(Rank by, std::string_view key) {
    auto op = at(by).get(key);
    EXPECT_EQ(remote::describe(end_of(op)), "done");
    return op.found() ? std::string(op.text()) : "-";
  }
  void put(Rank by, std::string_view key, std::string_view value) {
    auto op = at(by).put(key, value);
    EXPECT_EQ(remote::describe(end_of(op)), "done");
  }
  /// What a scan by that member returns, with so many chains a step and so long between two steps;
  /// fails if it returns a key twice.
  std::map<std::string, std::string> scanned(Rank by, std::uint32_t buckets = 4,
                                             std::uint64_t pause_ns = 0) {
    const auto text = [](std::span<const std::byte> bytes) {
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    std::map<std::string, std::string> all;
    StoreScan scan(at(by), {.buckets = buckets});
    StoreCursor cursor = 0;
    do {
      scan.step(cursor);
      EXPECT_EQ(remote::describe(end_of(scan)), "done");
      for (std::size_t i = 0; i < scan.size(); ++i)
        EXPECT_TRUE(all.emplace(text(scan[i].key), text(scan[i].value)).second)
            << "STO-C3, STO-M2: twice";
      cursor = scan.cursor();
      world.run_for(pause_ns);
    } while (cursor != 0);
    return all;
  }

  struct Node {
    std::unique_ptr<Group> group;
    std::unique_ptr<GroupMembers> members;
    std::unique_ptr<remote::Progress> progress;
    std::unique_ptr<Store> store;
  };
  sim::World world;
  std::vector<Node> nodes;
};

}  // namespace dunlin::test

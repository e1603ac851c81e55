#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/store.hpp>

#include "store/stores.hpp"

/// Founders that share a store, in the simulator, and members that join them later.
namespace dunlin::test {

inline constexpr std::uint32_t kFounders = 3;
inline constexpr std::uint32_t kMost = 6;

inline StoreOptions smallest_store() {
  StoreOptions options = small_store();
  options.memory_bytes = kMinStoreBytes;
  options.expected_keys = 8;
  return options;
}

struct LateMember {
  explicit LateMember(std::unique_ptr<Group> its_group, std::uint32_t most = kMost,
                      const StoreOptions& options = smallest_store())
      : group(std::move(its_group)), members(*group, most), store(progress, options) {}
  std::unique_ptr<Group> group;
  GroupMembers members;
  remote::Progress progress{group->fabric(), members};
  Store store;
};

/// Three founders with a store, and nodes that may come.
class Growing {
 public:
  explicit Growing(std::uint32_t others = 1, const sim::Profile& profile = sim::profile("ib100"),
                   const StoreOptions& its_options = smallest_store())
      : world(profile, kFounders, 1), nodes(kFounders + others), options(its_options) {
    for (std::uint32_t i = 0; i < others; ++i) world.add_node();
    for (Rank rank = 0; rank < nodes.size(); ++rank) {
      if (rank < kFounders)
        nodes[rank].member = std::make_unique<LateMember>(
            std::make_unique<Group>(world.fabric(rank), options_of(rank)), kMost, options);
      world.attach(rank, [&node = nodes[rank]] { return node.poll(); });
    }
    world.run_for(1'000'000);
  }
  ~Growing() {
    for (Rank rank = 0; rank < nodes.size(); ++rank) world.detach_all(rank);
    while (!nodes.empty()) nodes.pop_back();
  }
  GroupOptions options_of(Rank rank) { return {.rendezvous = world.rendezvous(rank, "sim")}; }

  /// A node comes into the group, without a store.
  void enter(Rank rank) {
    Node& node = nodes[rank];
    world.on(rank, [&, rank] {
      node.entry = std::make_unique<GroupEntry>("late" + std::to_string(rank), options_of(rank));
    });
    EXPECT_TRUE(world.run_until([&] { return node.group != nullptr; }, 10'000'000'000));
  }
  LateMember& join(Rank rank) {
    enter(rank);
    Node& node = nodes[rank];
    world.on(rank, [&] {
      node.member = std::make_unique<LateMember>(std::move(node.group), kMost, options);
    });
    EXPECT_TRUE(world.run_until([&] { return node.member != nullptr; }, 10'000'000'000));
    return *node.member;
  }
  LateMember& at(Rank rank) { return *nodes.at(rank).member; }
  std::string get(Rank by, std::string_view key) {
    auto op = at(by).store.get(key);
    EXPECT_EQ(remote::describe(end_of(op)), "done") << key;
    return op.found() ? std::string(op.text()) : "-";
  }
  void put(Rank by, std::string_view key, std::string_view value) {
    auto op = at(by).store.put(key, value);
    EXPECT_EQ(remote::describe(end_of(op)), "done") << key;
  }
  remote::Status take_keys(Rank by) {
    auto take = at(by).store.take_keys();
    return end_of(take);
  }
  remote::Status leave(Rank by) {
    auto leaves = at(by).store.leave();
    return end_of(leaves);
  }
  /// What a scan by that member returns, one chain a step; fails if it returns a key twice.
  std::map<std::string, std::string> scanned(Rank by, std::uint64_t pause_ns = 0) {
    const auto text = [](std::span<const std::byte> bytes) {
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    std::map<std::string, std::string> all;
    StoreScan scan(at(by).store, {.buckets = 1});
    StoreCursor cursor = 0;
    do {
      scan.step(cursor);
      EXPECT_EQ(remote::describe(end_of(scan)), "done");
      for (std::size_t i = 0; i < scan.size(); ++i)
        EXPECT_TRUE(all.emplace(text(scan[i].key), text(scan[i].value)).second) << "STO-M2: twice";
      cursor = scan.cursor();
      world.run_for(pause_ns);
    } while (cursor != 0);
    return all;
  }
  std::uint64_t count(Rank by) {
    auto op = at(by).store.count();
    EXPECT_EQ(remote::describe(end_of(op)), "done");
    return op.keys();
  }
  remote::Status end_of(remote::InFlight& operation) {
    EXPECT_TRUE(world.run_until([&] { return operation.finished(); }, 10'000'000'000)) << "hangs\n"
                                                                                       << states();
    return operation.status();
  }
  std::string states() {
    std::string text;
    for (const Node& node : nodes)
      if (node.member) text += node.member->store.describe_moves() + "\n";
    return text;
  }
  /// Until founder `by` has agreed with the others on it.
  void until_gone(Rank rank, Rank by = 0) {
    EXPECT_TRUE(world.run_until([&] { return !at(by).progress.contains(rank); }, 10'000'000'000))
        << states();
  }

  struct Node {
    std::size_t poll() {
      if (member) return member->progress.poll();
      if (group) return group->poll();
      if (!entry) return 0;
      group = entry->poll();
      if (group) entry.reset();
      return group ? 1 : 0;
    }
    std::unique_ptr<GroupEntry> entry;
    std::unique_ptr<Group> group;
    std::unique_ptr<LateMember> member;
  };
  sim::World world;
  std::vector<Node> nodes;
  StoreOptions options;
};

}  // namespace dunlin::test

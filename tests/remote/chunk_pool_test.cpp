#include <array>
#include <memory>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/remote.hpp>

namespace dunlin::remote {
namespace {

/// Simulated members, each with memory for four chunks of four blocks.
class Pools {
 public:
  explicit Pools(std::uint32_t members, std::size_t own_bytes = 4 * (64 + 4 * 128))
      : world(sim::profile("ib100"), members, 1), nodes(members) {
    for (Rank rank = 0; rank < members; ++rank) {
      Node& node = nodes[rank];
      node.group = std::make_unique<Group>(world.fabric(rank));
      node.members = std::make_unique<GroupMembers>(*node.group);
      node.progress = std::make_unique<Progress>(world.fabric(rank), *node.members);
      node.pool = std::make_unique<ChunkPool>(
          *node.progress,
          ChunkPoolOptions{
              .name = "p", .block_bytes = 100, .blocks_per_chunk = 4, .own_bytes = own_bytes});
      world.attach(rank, [&node] { return node.progress->poll(); });
    }
    world.run_for(1'000'000);
  }
  ChunkPool& at(Rank rank) { return *nodes[rank].pool; }
  std::optional<Block> allocate(Rank by, Rank home) {
    std::optional<Block> block = at(by).allocate(home);
    world.run_until(
        [&] {
          if (!block && !at(by).full(home)) block = at(by).allocate(home);
          return block || at(by).full(home);
        },
        100'000'000);
    return block;
  }
  void post(Rank by, const Operation& operation) {
    EXPECT_TRUE(world.fabric(by).post(operation).all());
    world.run_for(1'000'000);
  }

  struct Node {
    std::unique_ptr<Group> group;
    std::unique_ptr<GroupMembers> members;
    std::unique_ptr<Progress> progress;
    std::unique_ptr<ChunkPool> pool;
  };
  sim::World world;
  std::vector<Node> nodes;
};

TEST(ChunkPool, NoBlockIsAllocatedTwice) {
  Pools pools(3);
  std::set<std::uint64_t> offsets;
  for (int i = 0; i < 20; ++i)
    for (const Rank by : {0U, 1U, 2U})
      if (const auto block = pools.allocate(by, 1)) {
        EXPECT_EQ(block->home, 1U);
        EXPECT_EQ(block->offset % 64, 0U);
        EXPECT_LE(block->offset + 128, pools.at(1).own_memory().size());
        EXPECT_TRUE(offsets.insert(block->offset).second);
      }
  EXPECT_EQ(offsets.size(), 16U);
  EXPECT_EQ(pools.at(1).use().used, pools.at(1).use().bytes);
}

TEST(ChunkPool, WhatOthersFreeIsAllocatedAgainByWhoHoldsTheChunk) {
  Pools pools(2, 64 + 4 * 128);
  std::vector<Block> blocks;
  for (int i = 0; i < 4; ++i) {
    blocks.push_back(pools.allocate(0, 1).value());
    pools.post(0, pools.at(0).link(blocks.back()));
  }
  EXPECT_FALSE(pools.allocate(0, 1));
  EXPECT_FALSE(pools.allocate(1, 1));
  pools.post(1, pools.at(1).free(blocks[2]));
  EXPECT_EQ(pools.allocate(0, 1), blocks[2]);
  EXPECT_FALSE(pools.allocate(0, 1));
  pools.at(0).cancel(blocks[2]);
  EXPECT_EQ(pools.allocate(0, 1), blocks[2]);
}

TEST(ChunkPool, WhatADeadMemberHadNotLinkedComesBack) {
  Pools pools(3, 64 + 4 * 128);
  std::vector<Block> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(pools.allocate(2, 1).value());
  pools.post(2, pools.at(2).link(blocks[0]));
  pools.post(2, pools.at(2).link(blocks[1]));
  pools.post(0, pools.at(0).free(blocks[1]));
  pools.world.crash(2);
  std::set<std::uint64_t> again;
  EXPECT_TRUE(pools.world.run_until(
      [&] {
        if (const auto block = pools.at(1).allocate(1)) again.insert(block->offset);
        return again.size() == 3;
      },
      1'000'000'000));
  EXPECT_FALSE(again.contains(blocks[0].offset));
  EXPECT_FALSE(pools.allocate(1, 1));
}

TEST(ChunkPool, AMemberWithoutMemoryIsFull) {
  Pools pools(2, 0);
  EXPECT_FALSE(pools.allocate(0, 1));
  EXPECT_TRUE(pools.at(0).full(1));
}

}  // namespace
}  // namespace dunlin::remote

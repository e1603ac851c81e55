#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/join.hpp>
#include <dunlin/remote.hpp>
#include <dunlin/remote/slab_pool.hpp>

#include "remote/counted_memory.hpp"
#include "support/errors.hpp"
#include "support/fresh_group.hpp"
#include "support/group_member.hpp"

namespace dunlin::remote {
namespace {

constexpr std::size_t kSlab = 1024;
/// A slab's holder, two bit maps of one word each, and what fills the cache line.
constexpr std::size_t kHeader = 64;
constexpr std::size_t kStride = kHeader + kSlab;

/// Reads from member 1, which mostly take what is free of the queue before others come to it.
class Traffic final : public Part {
 public:
  explicit Traffic(Progress& progress)
      : fabric_(progress.fabric()), region_(fabric_.allocate({.name = "traffic", .bytes = 64})) {
    fabric_.announce(region_);
  }
  std::size_t poll_part() override {
    if (!going || ++polls_ % 4 == 0) return 0;
    std::size_t posted = 0;
    for (Completion& one : done_)
      if (one.finished())
        posted += fabric_.post(read(1, region_.id(), 0, &word_, 8).notify(one)).accepted;
    return posted;
  }
  void members_changed() override {}
  bool going = false;

 private:
  Fabric& fabric_;
  Region region_;
  std::array<Completion, 4> done_;
  std::uint32_t polls_ = 0;
  std::uint64_t word_ = 0;
};

/// Simulated members, each with memory for so many slabs of blocks of 64, 256 or 1024 bytes.
class Slabs {
 public:
  explicit Slabs(std::uint32_t members, std::size_t slabs,
                 const sim::Profile& profile = sim::profile("ib100"))
      : world(profile, members, 1), nodes(members) {
    for (Rank rank = 0; rank < members; ++rank) {
      Node& node = nodes[rank];
      node.member = std::make_unique<test::GroupMember>(world.fabric(rank));
      Progress& progress = node.member->progress;
      node.traffic = std::make_unique<Traffic>(progress);
      progress.add(*node.traffic);  // before the pool
      node.pool = std::make_unique<SlabPool>(
          progress, SlabPoolOptions{.name = "s",
                                    .slab_bytes = kSlab,
                                    .block_bytes = {64, 256, 1024},
                                    .own_bytes = slabs * kStride,
                                    .free_blocks = [&node] { return node.free_blocks(); }});
      world.attach(rank, [&progress] { return progress.poll(); });
    }
    world.run_for(1'000'000);
  }
  SlabPool& at(Rank rank) { return *nodes[rank].pool; }
  /// None once the home is full, within such a time.
  std::optional<SlabBlock> allocate(Rank by, Rank home, std::size_t bytes,
                                    std::uint64_t within_ns = 90'000'000) {
    std::optional<SlabBlock> block = at(by).allocate(home, bytes);
    EXPECT_TRUE(world.run_until(
        [&] {
          if (!block && !at(by).full(home, bytes)) block = at(by).allocate(home, bytes);
          return block || at(by).full(home, bytes);
        },
        within_ns))
        << "member " << by << " waits for room at member " << home;
    return block;
  }
  void post(Rank by, const Operation& operation) {
    bool taken = false;
    EXPECT_TRUE(world.run_until(
        [&] { return taken || (taken = world.fabric(by).post(operation).all()); }, 100'000'000));
    world.run_for(100'000);
  }
  void link(Rank by, SlabBlock block) { post(by, at(by).link(block)); }
  void free(Rank by, SlabBlock block) { post(by, at(by).free(block)); }

  struct Node {
    std::unique_ptr<test::GroupMember> member;
    std::unique_ptr<Traffic> traffic;
    std::unique_ptr<SlabPool> pool;
    std::function<Freed()> free_blocks = [] { return Freed::nothing; };
  };
  sim::World world;
  std::vector<Node> nodes;
};

/// It has hardly any room for what is under way.
sim::Profile narrow() {
  sim::Profile profile = sim::profile("ib100");
  profile.queue_slots = 3;
  profile.max_inline_bytes = 8;
  return profile;
}

TEST(SlabPool, NeedsNoMemoryForHintsAndWithdrawals) {
  constexpr std::uint32_t kSlabs = 300;  // more than a deque has room for
  Slabs slabs(2, kSlabs);
  for (std::uint32_t i = 0; i < kSlabs; ++i) EXPECT_TRUE(slabs.allocate(0, 1, 1024));
  {
    const test::NoMemoryForObjects none;
    for (std::uint32_t slab = 0; slab < kSlabs; ++slab) {
      slabs.at(0).hint(1, 2, slab);
      slabs.at(0).withdraw(1, slab);
    }
  }
  for (std::uint32_t slab = 0; slab < kSlabs; ++slab) slabs.at(0).keep(1, slab);
  EXPECT_FALSE(slabs.allocate(0, 1, 1024));
}

TEST(SlabPool, GivesTheSmallestBlockThatIsLargeEnough) {
  Slabs slabs(2, 8);
  for (const auto& [bytes, size_class] : std::map<std::size_t, std::uint32_t>{
           {0, 0}, {1, 0}, {64, 0}, {65, 1}, {256, 1}, {1024, 2}}) {
    const SlabBlock block = slabs.allocate(0, 1, bytes).value();
    EXPECT_EQ(block.size_class, size_class) << bytes;
    EXPECT_EQ(block.home, 1U);
    EXPECT_EQ(block.offset % 64, 0U);
    EXPECT_TRUE(slabs.at(1).is_block(block.offset, block.size_class));
    EXPECT_GE(slabs.at(0).bytes_of(block.size_class), bytes);
  }
  EXPECT_FALSE(slabs.allocate(0, 1, 1025));
  EXPECT_TRUE(slabs.at(0).full(1, 1025));
  EXPECT_FALSE(slabs.at(0).class_of(1025));
  EXPECT_FALSE(slabs.at(0).allocate(7, 64)) << "there is no member 7";
}

TEST(SlabPool, KnowsWhereABlockCanBe) {
  const Slabs slabs(1, 2);
  const SlabPool& pool = *slabs.nodes[0].pool;
  EXPECT_TRUE(pool.is_block(kHeader, 0));
  EXPECT_TRUE(pool.is_block(kStride + kHeader + 256, 1));
  EXPECT_FALSE(pool.is_block(0, 0)) << "that is a header";
  EXPECT_FALSE(pool.is_block(kHeader + 8, 0)) << "in the middle of a block";
  EXPECT_FALSE(pool.is_block(kHeader + 512, 2)) << "past the end of its slab";
  EXPECT_FALSE(pool.is_block(2 * kStride + kHeader, 0)) << "past the last slab";
  EXPECT_FALSE(pool.is_block(kHeader, 3)) << "there is no such size";
}

TEST(SlabPool, NoTwoBlocksOverlap) {
  Slabs slabs(3, 6);
  std::set<std::uint64_t> cache_lines;
  std::size_t bytes = 0;
  for (int round = 0; round < 40; ++round)
    for (const Rank by : {0U, 1U, 2U})
      for (const std::size_t wanted : {64U, 256U})
        if (const auto block = slabs.allocate(by, 1, wanted)) {
          bytes += wanted;
          for (std::size_t at = 0; at < wanted; at += 64)
            EXPECT_TRUE(cache_lines.insert(block->offset + at).second);
        }
  EXPECT_EQ(bytes, 6 * kSlab) << "each slab is used up, and no more";
}

TEST(SlabPool, AHomeThatIsFullHasRoomAgainForTheSameSize) {
  Slabs slabs(2, 1);
  std::vector<SlabBlock> blocks;
  while (const auto block = slabs.allocate(0, 1, 256)) {
    blocks.push_back(*block);
    slabs.link(0, *block);
  }
  EXPECT_EQ(blocks.size(), 4U);
  EXPECT_TRUE(slabs.at(0).full(1, 256));
  EXPECT_FALSE(slabs.allocate(0, 1, 64)) << "the one slab has blocks of 256 bytes";
  EXPECT_EQ(slabs.at(1).use().used, kSlab);
  slabs.free(1, blocks[2]);
  EXPECT_EQ(slabs.at(1).use().used, kSlab - 256);
  EXPECT_FALSE(slabs.allocate(1, 1, 256)) << "member 0 holds the slab";
  EXPECT_EQ(slabs.allocate(0, 1, 256), blocks[2]);
  EXPECT_FALSE(slabs.allocate(0, 1, 256));
}

TEST(SlabPool, ALargerBlockThatIsHeldDoesAsWell) {
  Slabs slabs(2, 2);
  const SlabBlock large = slabs.allocate(0, 1, 256).value();
  EXPECT_TRUE(slabs.allocate(0, 1, 256));
  const SlabBlock larger = slabs.allocate(0, 1, 1024).value();
  slabs.at(0).cancel(large);
  EXPECT_FALSE(slabs.allocate(0, 1, 64)) << "both slabs have other sizes";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(slabs.at(0).allocate_held(1, 64).value().size_class, 1U);
  EXPECT_FALSE(slabs.at(0).allocate_held(1, 64)) << "the block of 1024 bytes is in use";
  slabs.at(0).cancel(larger);
  EXPECT_EQ(slabs.at(0).allocate_held(1, 64), larger);
}

TEST(SlabPool, ABlockIsReusedOnceItWasFreedAndNotBefore) {
  Slabs slabs(2, 1);
  const SlabBlock first = slabs.allocate(0, 1, 1024).value();
  slabs.link(0, first);
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(slabs.allocate(0, 1, 1024)) << "it is linked";
    slabs.free(1, first);
    EXPECT_EQ(slabs.allocate(0, 1, 1024), first);
    EXPECT_FALSE(slabs.allocate(0, 1, 1024)) << "it is allocated";
    slabs.link(0, first);
  }
  EXPECT_EQ(slabs.at(1).use().blocks, 1U);
}

/// Any order of allocating, linking, cancelling and freeing.
void churn(const sim::Profile& profile, std::uint64_t seed) {
  Slabs slabs(2, 3, profile);
  slabs.nodes[0].traffic->going = true;
  std::mt19937_64 random(seed);
  std::vector<SlabBlock> linked;
  std::set<std::uint64_t> in_use;
  for (int step = 0; step < 150; ++step) {
    const auto block = slabs.allocate(0, 1, random() % 2 == 0 ? 64 : 256);
    if (block) {
      ASSERT_TRUE(slabs.at(1).is_block(block->offset, block->size_class));
      ASSERT_TRUE(in_use.insert(block->offset).second) << "REM-14: allocated twice";
      if (random() % 4 == 0) {
        slabs.at(0).cancel(*block);
        in_use.erase(block->offset);
      } else {
        slabs.link(0, *block);
        linked.push_back(*block);
      }
    }
    if (linked.empty() || (block && random() % 2 == 0)) continue;
    std::swap(linked[random() % linked.size()], linked.back());
    slabs.free(1, linked.back());
    in_use.erase(linked.back().offset);
    linked.pop_back();
  }
  slabs.nodes[0].traffic->going = false;
  slabs.world.run_for(1'000'000);
  std::size_t used = 0;
  for (const SlabBlock& block : linked) used += slabs.at(0).bytes_of(block.size_class);
  EXPECT_EQ(slabs.at(1).use().used, used);
  EXPECT_EQ(slabs.at(1).use().blocks, linked.size());
}

TEST(SlabPool, NothingIsLostInChurn) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    churn(sim::profile("ib100"), seed);
    churn(narrow(), seed);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

TEST(SlabPool, WhatADeadMemberHadNotLinkedComesBack) {
  Slabs slabs(3, 1);
  std::vector<SlabBlock> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(slabs.allocate(2, 1, 256).value());
  slabs.link(2, blocks[0]);
  slabs.link(2, blocks[1]);
  slabs.free(0, blocks[1]);
  EXPECT_FALSE(slabs.allocate(1, 1, 256));
  slabs.world.crash(2);
  std::set<std::uint64_t> again;
  EXPECT_TRUE(slabs.world.run_until(
      [&] {
        if (const auto block = slabs.at(1).allocate(1, 256)) again.insert(block->offset);
        return again.size() == 3;
      },
      1'000'000'000))
      << "REM-15";
  EXPECT_FALSE(again.contains(blocks[0].offset)) << "it is in use still";
  EXPECT_FALSE(slabs.allocate(1, 1, 256));
  slabs.free(0, blocks[0]);
  EXPECT_EQ(slabs.allocate(1, 1, 256), blocks[0]);
}

// --- empty slabs come back (REM-16, REM-17) ------------------------------------------------------

TEST(SlabPool, AnEmptySlabIsAnotherMembersAndOfAnotherSize) {
  Slabs slabs(3, 1);
  std::vector<SlabBlock> blocks;
  while (const auto block = slabs.allocate(0, 1, 256)) {
    slabs.link(0, *block);
    blocks.push_back(*block);
  }
  ASSERT_EQ(blocks.size(), 4U);
  EXPECT_FALSE(slabs.allocate(2, 1, 64));
  EXPECT_EQ(slabs.at(1).use().held, kSlab);
  for (const SlabBlock& block : blocks) slabs.free(2, block);
  EXPECT_EQ(slabs.at(1).use().used, 0U);
  EXPECT_EQ(slabs.at(1).use().held, kSlab) << "its holder does not know that it is empty";
  EXPECT_TRUE(slabs.allocate(2, 1, 64)) << "REM-17";
  EXPECT_FALSE(slabs.allocate(0, 1, 256)) << "REM-14: member 2 has the slab";
  EXPECT_FALSE(slabs.allocate(1, 1, 1024));
}

TEST(SlabPool, OneBlockAtATimeHasRoomWhoeverAllocatesIt) {
  for (const sim::Profile& profile : {sim::profile("ib100"), narrow()}) {
    Slabs slabs(4, 2, profile);
    std::mt19937_64 random(3);
    for (int step = 0; step < 60; ++step) {
      const auto by = static_cast<Rank>(random() % 4), home = static_cast<Rank>(random() % 2);
      const std::size_t bytes = std::array<std::size_t, 3>{64, 256, 1024}.at(random() % 3);
      const auto block = slabs.allocate(by, home, bytes);
      ASSERT_TRUE(block) << "REM-17: step " << step << ", member " << by << " at " << home;
      if (random() % 4 == 0) {
        slabs.at(by).cancel(*block);
        continue;
      }
      slabs.link(by, *block);
      slabs.free(static_cast<Rank>(random() % 4), *block);
    }
  }
}

TEST(SlabPool, ASlabWithABlockThatIsNotLinkedYetStaysWithItsHolder) {
  Slabs slabs(3, 1);
  const SlabBlock block = slabs.allocate(0, 1, 256).value();
  EXPECT_FALSE(slabs.allocate(2, 1, 64)) << "REM-16";
  EXPECT_EQ(slabs.allocate(0, 1, 256)->size_class, 1U) << "the holder goes on";
  slabs.link(0, block);
  EXPECT_EQ(slabs.at(1).use().blocks, 1U);
}

TEST(SlabPool, AnEmptySlabOfADeadMemberIsAnothers) {
  Slabs slabs(3, 1);
  const SlabBlock block = slabs.allocate(2, 1, 256).value();
  slabs.link(2, block);
  slabs.free(0, block);
  slabs.world.crash(2);
  EXPECT_TRUE(slabs.world.run_until([&] { return !slabs.nodes[1].member->members.contains(2); },
                                    1'000'000'000));
  EXPECT_TRUE(slabs.allocate(0, 1, 64)) << "REM-17";
}

TEST(SlabPool, AnEmptySlabOfAMemberThatDiesWhileItIsAskedForIsAnothers) {
  for (const bool hangs : {false, true})
    for (std::uint64_t delay_ns = 0; delay_ns < 40'000; delay_ns += 2'000) {
      Slabs slabs(4, 1);
      const SlabBlock block = slabs.allocate(2, 1, 256).value();
      slabs.link(2, block);
      slabs.free(0, block);
      EXPECT_FALSE(slabs.at(0).allocate(1, 64));
      slabs.world.run_for(delay_ns);
      hangs ? slabs.world.hang(2) : slabs.world.crash(2);
      EXPECT_TRUE(slabs.allocate(0, 1, 64, 5'000'000'000))
          << "REM-17: after " << delay_ns << " ns" << (hangs ? ", hangs" : "");
    }
}

TEST(SlabPool, AHomeAndAHolderThatDoNotPollKeepNobodyWaitingForLong) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  Slabs slabs(3, 1);
  const SlabBlock block = slabs.allocate(0, 1, 256).value();
  slabs.link(0, block);
  slabs.free(0, block);
  slabs.world.detach_all(0);  // its fabric is polled no more either
  EXPECT_FALSE(slabs.allocate(2, 1, 64, kSecond));
  slabs.world.detach_all(1);
  EXPECT_FALSE(slabs.allocate(2, 1, 64, 2 * kSecond));
  EXPECT_FALSE(slabs.allocate(2, 1, 64, 1'000'000)) << "it is not asked again soon";
}

TEST(SlabPool, AHomeTakesEmptySlabsBackUnasked) {
  Slabs slabs(2, 4);
  for (const std::size_t bytes : {64U, 256U, 1024U}) {
    const SlabBlock block = slabs.allocate(0, 1, bytes).value();
    slabs.link(0, block);
    slabs.free(1, block);
  }
  const SlabBlock used = slabs.allocate(1, 1, 64).value();
  slabs.link(1, used);
  EXPECT_EQ(slabs.at(1).use().held, 4 * kSlab);
  slabs.at(1).take_back_empty();
  slabs.world.run_for(1'000'000);
  EXPECT_EQ(slabs.at(1).use().held, 4 * kSlab) << "they were empty only once";
  slabs.at(1).take_back_empty();
  slabs.world.run_for(1'000'000);
  EXPECT_EQ(slabs.at(1).use().held, kSlab);
  EXPECT_EQ(slabs.at(1).use().used, 64U);
}

TEST(SlabPool, AHomeFreesBlocksWhenAMemberFindsNoRoom) {
  Slabs slabs(2, 1);
  std::vector<SlabBlock> blocks;
  while (const auto block = slabs.allocate(0, 1, 256)) {
    slabs.link(0, *block);
    blocks.push_back(*block);
  }
  int calls = 0;
  slabs.nodes[1].free_blocks = [&] {
    if (++calls < 3) return Freed::looking;
    if (calls > 3 || !slabs.world.fabric(1).post(slabs.at(1).free(blocks[2])).all())
      return Freed::nothing;
    return Freed::some;
  };
  EXPECT_EQ(slabs.allocate(0, 1, 256), blocks[2]);
  EXPECT_EQ(calls, 3);
  EXPECT_FALSE(slabs.allocate(0, 1, 256));
}

TEST(SlabPool, AHomeThatDiesIsFull) {
  Slabs slabs(3, 4);
  const SlabBlock block = slabs.allocate(0, 2, 64).value();
  slabs.world.crash(2);
  slabs.world.run_for(50'000'000);
  EXPECT_FALSE(slabs.allocate(0, 2, 64));
  EXPECT_TRUE(slabs.at(0).full(2, 64));
  slabs.at(0).cancel(block);
  EXPECT_FALSE(slabs.at(0).allocate_held(2, 64)) << "nobody has its blocks any more";
  EXPECT_TRUE(slabs.allocate(0, 1, 64));
}

TEST(SlabPool, AMemberWithoutMemoryIsFull) {
  Slabs slabs(2, 0);
  EXPECT_FALSE(slabs.allocate(0, 1, 64));
  EXPECT_TRUE(slabs.at(0).full(1, 64));
  EXPECT_EQ(slabs.at(1).use().bytes, 0U);
}

TEST(SlabPool, RefusesSizesThatDoNotFit) {
  sim::World world(sim::profile("ib100"), 1, 1);
  Progress progress(world.fabric(0));
  const auto with = [&](std::size_t slab, std::vector<std::size_t> blocks) {
    return test::what_is_thrown_by([&] {
      const SlabPool pool(progress, {.name = "odd", .slab_bytes = slab, .block_bytes = blocks});
    });
  };
  EXPECT_TRUE(test::contains(with(1024, {}), "odd"));
  EXPECT_TRUE(test::contains(with(1024, {100}), "whole cache lines"));
  EXPECT_TRUE(test::contains(with(1024, {256, 64}), "ascend"));
  EXPECT_TRUE(test::contains(with(1024, {2048}), "fit in a slab"));
  EXPECT_TRUE(test::contains(with(1000, {64}), "whole cache lines"));
}

TEST(SlabPool, AHintToWhatIsNoSlabIsForgotten) {
  Slabs slabs(2, 4);
  slabs.at(1).hint(0, 0, 0x7fffffff);
  EXPECT_TRUE(slabs.allocate(1, 0, 64));
}

TEST(SlabPool, GoesOnOnceThereIsMemoryForFramesAgain) {
  Slabs slabs(3, 1);
  const SlabBlock block = slabs.allocate(0, 1, 256).value();
  slabs.link(0, block);
  {
    const test::NoMemory no_memory;
    EXPECT_FALSE(slabs.allocate(2, 1, 64)) << "the member has none";
  }
  EXPECT_FALSE(slabs.allocate(2, 1, 64)) << "the slab is in use";
  slabs.free(2, block);
  {
    const test::NoMemory no_memory;
    EXPECT_FALSE(slabs.at(2).allocate(1, 64));
    slabs.world.run_for(20'000'000);
    EXPECT_FALSE(slabs.at(2).full(1, 64)) << "the home has none, and tries again";
  }
  EXPECT_TRUE(slabs.allocate(2, 1, 64)) << "REM-17";
}

TEST(SlabPoolInMappedMemory, FindsSlabsAndFreedBlocksWithinTheCall) {
  const auto fabric = join({.group = test::fresh_group(), .members = 1});
  Progress progress(*fabric);
  SlabPool pool(
      progress,
      {.name = "s", .slab_bytes = kSlab, .block_bytes = {64, 256, 1024}, .own_bytes = 2 * kStride});
  const auto first = pool.allocate(0, 1024);
  ASSERT_TRUE(first);
  const auto second = pool.allocate(0, 1024);
  ASSERT_TRUE(second);
  EXPECT_NE(first, second);
  ASSERT_TRUE(fabric->post(pool.link(*first)).all());
  ASSERT_TRUE(fabric->post(pool.free(*first)).all());
  EXPECT_EQ(pool.allocate(0, 1024), first) << "both slabs are held, and only this block is free";
}

}  // namespace
}  // namespace dunlin::remote

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/fabric/sim.hpp>
#include <dunlin/join.hpp>
#include <dunlin/remote/lock.hpp>

#include "support/fresh_group.hpp"

/// Locks whose words a peer has written as no member of its own does. (tests/segment has the
/// others.) And locks for the length of one function.
namespace dunlin::remote {
namespace {

struct CorruptLocks : testing::Test {
  CorruptLocks() {
    for (Rank rank = 0; rank < 2; ++rank) {
      progress[rank] = std::make_unique<Progress>(world.fabric(rank));
      words[rank] = world.fabric(rank).allocate({.name = "words", .bytes = 64});
      world.fabric(rank).announce(words[rank]);
      locks[rank] = std::make_unique<Locks>(
          *progress[rank],
          LocksOptions{.name = "l", .words = words[rank].id(), .own_words = words[rank].memory()});
      world.attach(rank, [this, rank] { return progress[rank]->poll(); });
    }
    world.run_for(100'000);
  }
  ~CorruptLocks() override {
    for (Rank rank = 0; rank < 2; ++rank) world.detach_all(rank);
  }
  Locks::Answer answer_to(Rank by, Rank home) {
    const LockNode node = locks[by]->acquire(home, 0, false);
    world.run_until([&] { return locks[by]->answer(node) != Locks::Answer::waiting; }, 10'000'000);
    const Locks::Answer answer = locks[by]->answer(node);
    locks[by]->release(node);
    return answer;
  }
  sim::World world{sim::profile("ib100"), 2, 1};
  std::array<Region, 2> words;
  std::array<std::unique_ptr<Progress>, 2> progress;
  std::array<std::unique_ptr<Locks>, 2> locks;
};

TEST_F(CorruptLocks, AWordThatNamesNoMemberIsNoLock) {
  auto& word = *reinterpret_cast<std::uint64_t*>(words[0].memory().data());
  for (const std::uint64_t nonsense : {2UL, 0xfff00000UL, 0x00100000UL + (0xfffUL << 8)}) {
    memory::store(word, nonsense);
    EXPECT_EQ(answer_to(1, 0), Locks::Answer::lost) << nonsense;
  }
  memory::store(word, 0);
  EXPECT_EQ(answer_to(1, 0), Locks::Answer::held);
}

TEST_F(CorruptLocks, AnEndOfTheHomesPartEndsTheLocksThere) {
  const LockNode node = locks[1]->acquire(0, 0, false);
  ASSERT_TRUE(
      world.run_until([&] { return locks[1]->answer(node) == Locks::Answer::held; }, 10'000'000));
  locks[0].reset();
  words[0] = {};
  world.run_for(1'000'000);
  locks[1]->release(node);
  EXPECT_TRUE(world.run_until([&] { return locks[1]->idle(0, 0); }, 10'000'000));
}

/// Two members of this thread, each of which has the other's memory mapped.
struct MappedLocks : testing::Test {
  MappedLocks() {
    const std::string group = test::fresh_group();
    auto one = begin_join({.group = group, .members = 2, .silence_timeout_ms = 0});
    auto other = begin_join({.group = group, .members = 2, .silence_timeout_ms = 0});
    while (!fabrics[0] || !fabrics[1]) {
      if (!fabrics[0]) fabrics[0] = one->poll();
      if (!fabrics[1]) fabrics[1] = other->poll();
    }
    for (Rank i = 0; i < 2; ++i) {
      progress[i] = std::make_unique<Progress>(*fabrics[i]);
      words[i] = fabrics[i]->allocate({.name = "words", .bytes = 64});
      fabrics[i]->announce(words[i]);
      locks[i] = std::make_unique<Locks>(
          *progress[i],
          LocksOptions{.name = "l", .words = words[i].id(), .own_words = words[i].memory()});
    }
    until([&] { return !fabrics[1]->reach(home, words[1].id()).empty(); });
    word = fabrics[1]->reach(home, words[1].id()).data();
  }
  void until(const std::function<bool()>& condition) {
    while (!condition())
      for (const auto& one : progress) one->poll();
  }
  std::array<std::unique_ptr<Fabric>, 2> fabrics;
  std::array<std::unique_ptr<Progress>, 2> progress;
  std::array<Region, 2> words;
  std::array<std::unique_ptr<Locks>, 2> locks;
  Rank home = 0;
  std::byte* word = nullptr;
};

TEST_F(MappedLocks, OfOneFunctionHaveNoNodeUntilAnotherMemberEntersTheQueue) {
  std::uint64_t entered = locks[1]->enter(word);
  ASSERT_NE(entered, 0U);
  EXPECT_EQ(locks[1]->enter(word), 0U) << "it is held";
  EXPECT_TRUE(locks[1]->idle(home, 0));
  locks[1]->leave(word, entered, home, 0);
  EXPECT_EQ(memory::load(*reinterpret_cast<std::uint64_t*>(word)), 0U);

  entered = locks[1]->enter(word);
  ASSERT_NE(entered, 0U);
  const LockNode other = locks[0]->acquire(home, 0, false);
  EXPECT_EQ(locks[0]->answer(other), Locks::Answer::waiting);
  locks[1]->leave(word, entered, home, 0);
  until([&] { return locks[0]->answer(other) == Locks::Answer::held && locks[1]->idle(home, 0); });
  EXPECT_FALSE(locks[0]->recovered(other));
  locks[0]->release(other);
  EXPECT_TRUE(locks[0]->idle(home, 0));
  EXPECT_EQ(memory::load(*reinterpret_cast<std::uint64_t*>(word)), 0U);

  const LockNode kept = locks[1]->keep(locks[1]->enter(word), home, 0);
  EXPECT_EQ(locks[1]->answer(kept), Locks::Answer::held);
  EXPECT_FALSE(locks[1]->idle(home, 0));
  locks[1]->release(kept);
  EXPECT_TRUE(locks[1]->idle(home, 0));
}

}  // namespace
}  // namespace dunlin::remote

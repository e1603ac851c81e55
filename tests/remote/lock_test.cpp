#include <array>
#include <cstdint>
#include <memory>

#include <gtest/gtest.h>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/fabric/sim.hpp>
#include <dunlin/remote/lock.hpp>

/// Locks whose words a peer has written as no member of its own does. (tests/segment has the
/// others.)
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

}  // namespace
}  // namespace dunlin::remote

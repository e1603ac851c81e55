#include <stdexcept>
#include <vector>

#include "fabric/sim_world.hpp"

/// The clock, the program of a node, and when it runs.
namespace dunlin::sim {
namespace {

TEST(SimTime, StandsStillUntilSomethingHappens) {
  World world(plain(), 2, 1);
  EXPECT_EQ(world.now_ns(), 0U);
  EXPECT_FALSE(world.run_until([] { return false; }, 1'000'000));
  EXPECT_EQ(world.now_ns(), 0U) << "nothing could ever happen, so it ended at once";
  world.run_for(500);
  EXPECT_EQ(world.now_ns(), 500U);
}

TEST(SimTime, RunsActionsInTheOrderOfTheirTimes) {
  World world(plain(), 1, 1);
  std::vector<int> order;
  world.at(300, [&] { order.push_back(3); });
  world.at(100, [&] { order.push_back(1); });
  world.at(200, [&] {
    order.push_back(2);
    world.at(50, [&] { order.push_back(20); });  // the past is now
  });
  world.run_for(1'000);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 20, 3}));
}

TEST(SimTime, RunUntilStopsAtTheVeryEvent) {
  World world(plain(), 1, 1);
  bool rung = false;
  world.at(777, [&] { rung = true; });
  world.at(900, [] {});
  EXPECT_TRUE(world.run_until([&] { return rung; }, 10'000));
  EXPECT_EQ(world.now_ns(), 777U);
}

TEST(SimTime, RunUntilStopsAtItsLimit) {
  World world(plain(), 1, 1);
  world.at(5'000, [] {});
  EXPECT_FALSE(world.run_until([] { return false; }, 1'000));
  EXPECT_EQ(world.now_ns(), 1'000U);
}

TEST(SimTime, EndsEarlyWhenAllNodesOnlySpin) {
  TestWorld t(plain(), 3);
  const std::uint64_t before = t.world.now_ns();
  EXPECT_FALSE(t.world.run_until([] { return false; }, 1'000'000'000));
  EXPECT_LT(t.world.now_ns() - before, 100'000U) << "heartbeats alone do not keep a world alive";
}

TEST(SimTime, CannotBeRunFromWithin) {
  World world(plain(), 1, 1);
  world.at(10, [&] { EXPECT_THROW(world.run_for(10), Error); });
  world.run_for(100);
  EXPECT_EQ(world.now_ns(), 100U);
}

/// A node whose fruitless round takes 70 ns, and what its fabric said of the time at each round
/// that was run.
struct Spinner {
  World world{plain(), 2, 1};
  std::vector<std::uint64_t> rounds;
  std::size_t busy_rounds = 0;

  Spinner() {
    world.attach(0, [this] {
      rounds.push_back(world.fabric(0).now_ns());
      world.fabric(0).spend(70);
      return busy_rounds > 0 ? busy_rounds-- : 0;
    });
  }
};

TEST(SimPolling, GoesOnAtOnceWhileThereIsProgress) {
  Spinner s;
  s.busy_rounds = 3;
  s.world.run_for(10'000);
  EXPECT_EQ(s.rounds, (std::vector<std::uint64_t>{0, 70, 140, 210}));
}

TEST(SimPolling, SkipsFruitlessRoundsButKeepsTheirPhase) {
  Spinner s;
  s.world.run_for(1'000);
  ASSERT_EQ(s.rounds.size(), 1U);
  s.world.at(1'000, [&] { s.world.fabric(0).wake_at(1'000); });
  s.world.run_for(1'000);
  // Rounds would have begun at 70, 140, ..., 980, 1050.
  EXPECT_EQ(s.rounds, (std::vector<std::uint64_t>{0, 1'050}));
}

TEST(SimPolling, AnArrivalAtTheBeginningOfARoundIsSeenByIt) {
  Spinner s;
  s.world.at(1'050, [&] { s.world.fabric(0).wake_at(0); });
  s.world.run_for(5'000);
  EXPECT_EQ(s.rounds, (std::vector<std::uint64_t>{0, 1'050}));
}

TEST(SimPolling, HappensAtARequestedMomentInItsPhase) {
  Spinner s;
  s.world.run_for(100);
  s.world.fabric(0).wake_at(3'000);
  s.world.run_for(5'000);
  EXPECT_EQ(s.rounds, (std::vector<std::uint64_t>{0, 3'010})) << "43 times 70 ns";
}

TEST(SimPolling, ALayerThatAsksAtEachRoundIsPolledAtItsOwnRate) {
  World world(plain(), 1, 1);
  std::vector<std::uint64_t> rounds;
  world.attach(0, [&] {
    Fabric& fabric = world.fabric(0);
    rounds.push_back(fabric.now_ns());
    fabric.spend(10);
    fabric.wake_at(rounds.back() + 500);
    return 0;
  });
  world.run_for(2'100);
  EXPECT_EQ(rounds, (std::vector<std::uint64_t>{0, 500, 1'000, 1'500, 2'000}));
}

TEST(SimPolling, RunsAnActionWhenTheCpuIsFree) {
  Spinner s;
  s.world.run_for(100);
  std::uint64_t ran_at = 0;
  s.world.on(0, [&] {
    ran_at = s.world.fabric(0).now_ns();
    s.world.fabric(0).spend(1'000);
  });
  s.world.run_for(5'000);
  EXPECT_EQ(ran_at, 140U) << "the fruitless round from 70 to 140 ends first";
  EXPECT_EQ(s.rounds, (std::vector<std::uint64_t>{0, 1'140}))
      << "what the action cost comes on top";
}

TEST(SimPolling, ADetachedProgramRunsNoMore) {
  Spinner s;
  s.world.run_for(100);
  s.world.detach_all(0);
  s.world.fabric(0).wake_at(200);
  s.world.run_for(1'000);
  EXPECT_EQ(s.rounds.size(), 1U);
}

TEST(SimPolling, AProgramMayReplaceItself) {
  World world(plain(), 1, 1);
  int first = 0;
  int second = 0;
  world.attach(0, [&] {
    ++first;
    world.detach_all(0);
    world.attach(0, [&] { return ++second < 3 ? 1 : 0; });
    return 1;
  });
  world.run_for(1'000);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 3);
}

TEST(SimCpu, ASlowNodeTakesLongerForTheSame) {
  Spinner s;
  s.world.slow(0, 3.0);
  s.busy_rounds = 2;
  s.world.run_for(10'000);
  EXPECT_EQ(s.rounds, (std::vector<std::uint64_t>{0, 210, 420}));
}

TEST(SimCpu, APauseDelaysTheRoundUnderWay) {
  Spinner s;
  s.busy_rounds = 1;
  s.world.at(30, [&] { s.world.pause(0, 1'000); });
  s.world.run_for(10'000);
  EXPECT_EQ(s.rounds, (std::vector<std::uint64_t>{0, 1'070}));
}

TEST(SimCpu, AHungNodeRunsNoMore) {
  Spinner s;
  s.busy_rounds = 1'000;
  s.world.at(145, [&] { s.world.hang(0); });
  s.world.run_for(10'000);
  EXPECT_EQ(s.rounds, (std::vector<std::uint64_t>{0, 70, 140}));
}

TEST(SimCpu, PollingAndPostingCostWhatTheProfileSays) {
  Profile figures = plain();
  figures.cpu.poll_ns = 30;
  figures.post_ns = 100;
  figures.post_batched_ns = 10;
  TestWorld t(figures);
  t.settle();
  std::uint64_t poll_ns = 0;
  std::uint64_t post_ns = 0;
  t.world.on(0, [&] {
    Fabric& fabric = t.world.fabric(0);
    const std::uint64_t start = fabric.now_ns();
    fabric.poll();
    poll_ns = fabric.now_ns() - start;
    const std::uint64_t value = 1;
    const Operation one = write(1, t.id(0), 0, &value, 8);
    const std::vector<Operation> batch(5, one);
    EXPECT_TRUE(fabric.post(batch).all());
    post_ns = fabric.now_ns() - start - poll_ns;
  });
  t.settle();
  EXPECT_EQ(poll_ns, 30U);
  EXPECT_EQ(post_ns, 100U + 4U * 10U);
}

TEST(SimCpu, TellsItsCosts) {
  World world(profile("ib40-2015"), 1, 1);
  ASSERT_NE(world.fabric(0).cpu_costs(), nullptr);
  EXPECT_EQ(world.fabric(0).cpu_costs()->predicate_ns, profile("ib40-2015").cpu.predicate_ns);
}

TEST(SimWorld, AProgramThatPollsFromOutsideMovesTheClock) {
  World world(plain(), 2, 1);
  Region a = world.fabric(0).allocate({.name = "box", .bytes = 64});
  Region b = world.fabric(1).allocate({.name = "box", .bytes = 64});
  world.fabric(1).announce(b);
  while (!world.fabric(0).connected(1, a.id())) world.fabric(0).poll();
  EXPECT_GE(world.now_ns(), 1'000U);
  const std::uint64_t value = 42;
  Completion done;
  ASSERT_TRUE(world.fabric(0).post(write(1, a.id(), 0, &value, 8).notify(done)).all());
  while (!done.finished()) world.fabric(0).poll();
  EXPECT_EQ(*reinterpret_cast<const std::uint64_t*>(b.memory().data()), 42U);
}

TEST(SimWorld, NamesWhatIsWrongWithAProfile) {
  Profile wrong = plain();
  wrong.jitter = 2;
  try {
    const World world(wrong, 2, 1);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("jitter"), std::string::npos) << error.what();
  }
  EXPECT_THROW(World(plain(), 0, 1), Error);
  EXPECT_THROW(World(plain(), kMaxMembers + 1, 1), Error);
  World world(plain(), 2, 1);
  EXPECT_THROW(world.crash(2), Error);
  EXPECT_THROW(world.slow(0, 0), Error);
}

TEST(SimTime, ADetachedPartIsNotCalledAgainInTheSameRound) {
  World world(plain(), 1, 1);
  int first = 0, second = 0, later = 0;
  world.attach(0, [&] {
    ++first;
    world.detach_all(0);
    world.attach(0, [&] { return ++later, 0; });
    return 1;
  });
  world.attach(0, [&] { return ++second, 1; });
  world.run_for(1'000);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 0);
  EXPECT_GT(later, 0);
}

TEST(SimTime, GoesOnAfterAProgramHasThrown) {
  World world(plain(), 1, 1);
  int calls = 0;
  world.attach(0, [&]() -> std::size_t {
    if (++calls == 1) throw std::runtime_error("boom");
    return 0;
  });
  EXPECT_THROW(world.run_for(1'000), std::runtime_error);
  world.run_for(1'000);
  EXPECT_GT(calls, 1);
  world.on(0, [] { throw std::runtime_error("boom"); });
  EXPECT_THROW(world.run_for(1'000), std::runtime_error);
  world.detach_all(0);
  const int before = calls;
  world.run_for(1'000);
  EXPECT_EQ(calls, before);
}

}  // namespace
}  // namespace dunlin::sim

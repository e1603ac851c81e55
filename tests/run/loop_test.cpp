#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/join.hpp>
#include <dunlin/run.hpp>

#include "fabric/shm_group.hpp"
#include "support/policies.hpp"

namespace dunlin {
namespace {

using test::contains;
using test::fresh_group;
using test::what_is_thrown_by;

constexpr std::uint32_t kPatienceMs = 120'000;

std::unique_ptr<Fabric> alone() {
  return join({.group = fresh_group(), .members = 1, .silence_timeout_ms = 0});
}

/// What a loop polls: does what a test says.
struct Part {
  std::function<std::size_t()> poll;
};
struct CheckedPart : Part {
  std::function<void()> check;
};

struct LoopOf : testing::TestWithParam<Wait> {
  const std::unique_ptr<Fabric> fabric = alone();
  std::stop_source stopper;
  [[nodiscard]] RunOptions options() const {
    return {.wait = GetParam(), .stop = stopper.get_token()};
  }
};

INSTANTIATE_TEST_SUITE_P(Policy, LoopOf, testing::ValuesIn(test::kPolicies), test::name_of_policy);

TEST_P(LoopOf, PollsItsPartsInOrder) {
  std::string order;
  Part a{[&] { return order += 'a', 1; }};
  Part b{[&] { return order += 'b', 0; }};
  EXPECT_TRUE(Loop(*fabric, options())
                  .add(a)
                  .add(b)
                  .run_until([&] { return order.size() == 6; }, kPatienceMs));
  EXPECT_EQ(order, "ababab");
}

TEST_P(LoopOf, PollsOnceEvenIfTheConditionHolds) {
  int polls = 0;
  Part part{[&] { return ++polls, 0; }};
  EXPECT_TRUE(Loop(*fabric, options()).add(part).run_until([] { return true; }, 0));
  EXPECT_EQ(polls, 1);
}

/// With polls that were fast before: the fabric must not go by how many there were.
TEST_P(LoopOf, LooksAtTheClockInTimeThoughItsTurnsHaveBecomeSlow) {
  int turns = 0, unseen = 0, most_unseen = 0;
  std::uint64_t last_look_ns = 0;
  Part part{[&]() -> std::size_t {
    fabric->poll();
    if (++turns < 100'000) return 1;
    unseen = fabric->recent_ns() == last_look_ns ? unseen + 1 : 0;
    most_unseen = std::max(most_unseen, unseen);
    last_look_ns = fabric->recent_ns();
    const std::uint64_t end_ns = fabric->now_ns() + 1'000'000;
    while (fabric->now_ns() < end_ns) {  // computes something
    }
    return 1;
  }};
  Loop(*fabric, options()).add(part).run_until([&] { return turns == 100'020; }, kPatienceMs);
  EXPECT_LT(most_unseen, 4);
}

TEST_P(LoopOf, GivesUpAfterItsTimeout) {
  Part idle{[&] { return fabric->poll(); }};
  const std::uint64_t before_ns = fabric->now_ns();
  EXPECT_FALSE(Loop(*fabric, options()).add(idle).run_until([] { return false; }, 3));
  EXPECT_GE(fabric->now_ns() - before_ns, 3'000'000U);
}

TEST_P(LoopOf, GivesUpAfterItsTimeoutThoughAPartIsIdleInEveryOtherTurnOnly) {
  std::size_t turns = 0;
  Part part{[&] { return ++turns % 2; }};
  EXPECT_FALSE(Loop(*fabric, options()).add(part).run_until([&] { return turns > 20'000'000; }, 3));
}

TEST_P(LoopOf, GivesUpAfterItsTimeoutThoughAPartIsNeverIdle) {
  Part busy{[] { return std::size_t{1}; }};
  EXPECT_FALSE(Loop(*fabric, options()).add(busy).run_until([] { return false; }, 3));
}

TEST_P(LoopOf, NoticesAConditionThatAPartMakesTrueLate) {
  const std::uint64_t due_ns = fabric->now_ns() + 2'000'000;
  Part sluggish{[&]() -> std::size_t {
    fabric->wake_at(due_ns);
    fabric->poll();
    return 0;
  }};
  EXPECT_TRUE(Loop(*fabric, options())
                  .add(sluggish)
                  .run_until([&] { return fabric->now_ns() >= due_ns; }, kPatienceMs));
}

/// Whichever poll makes it true: also the last one before a sleep.
TEST_P(LoopOf, NoticesAConditionThatAnyPollMakesTrue) {
  for (int last = 1; last <= 64; ++last) {
    int polls = 0;
    Part part{[&] {
      if (++polls < last) fabric->wake();
      return fabric->poll();
    }};
    RunOptions at_once = options();
    at_once.spin_us = 0;
    ASSERT_TRUE(
        Loop(*fabric, at_once).add(part).run_until([&] { return polls == last; }, kPatienceMs))
        << last;
  }
}

TEST_P(LoopOf, StopsWhenAsked) {
  Part stopping{[&]() -> std::size_t {
    stopper.request_stop();
    return 0;
  }};
  Loop(*fabric, options()).add(stopping).run();
  EXPECT_FALSE(Loop(*fabric, options()).add(stopping).run_until([] { return false; }, kPatienceMs));
}

TEST_P(LoopOf, StopsWhenAskedByAnotherThreadAlsoInItsSleep) {
  std::atomic<int> idle_polls = 0;
  Part idle{[&] { return ++idle_polls, fabric->poll(); }};
  const std::jthread other([&] {
    // As many as there are for certain before the loop sleeps, from which nothing else wakes it.
    while (idle_polls < (GetParam() == Wait::block ? 2 : 16)) {
      std::this_thread::yield();
    }
    stopper.request_stop();
  });
  Loop(*fabric, options()).add(idle).run();
  EXPECT_TRUE(stopper.stop_requested());
}

TEST_P(LoopOf, LetsAnExceptionOutAndCanGoOn) {
  int polls = 0;
  Part part{[&]() -> std::size_t {
    // Not in the first poll: the one in which a sleeping policy has armed its doorbell, too.
    if (++polls == 5) throw std::runtime_error("from a trigger");
    fabric->wake();
    return fabric->poll();
  }};
  Loop loop(*fabric, options());
  loop.add(part);
  EXPECT_THROW(loop.run_until([] { return false; }, kPatienceMs), std::runtime_error);
  EXPECT_EQ(polls, 5);
  EXPECT_TRUE(loop.run_until([&] { return polls == 6; }, kPatienceMs));
}

TEST_P(LoopOf, ChecksItsPartsWhenThereIsNothingToDo) {
  CheckedPart part;
  part.poll = [&] { return fabric->poll(); };
  part.check = [] { throw Error("the layouts differ"); };
  EXPECT_EQ(what_is_thrown_by([&] { Loop(*fabric, options()).add(part).run(); }),
            "the layouts differ");
}

TEST_P(LoopOf, ChecksItsPartsAlsoWhenThereIsAlwaysSomethingToDo) {
  CheckedPart part;
  part.poll = [] { return std::size_t{1}; };
  part.check = [] { throw Error("the layouts differ"); };
  EXPECT_EQ(what_is_thrown_by([&] { Loop(*fabric, options()).add(part).run(); }),
            "the layouts differ");
}

/// One node asks, the other answers; each sleeps, as its policy says, while it is not its turn.
TEST_P(LoopOf, IsWokenByAPeer) {
  constexpr std::uint64_t kRounds = 500;
  test::run_members(2, [&](test::Member& member) {
    const Rank me = member.fabric->rank();
    std::uint64_t turn = me;
    Part part{[&]() -> std::size_t {
      const std::size_t done = member.fabric->poll();
      if (turn >= kRounds || member.word(0) != turn) return done;
      // The last one is not answered: who sent it may be gone.
      if (turn + 1 < kRounds) member.write_word(1 - me, 0, turn + 1);
      turn += 2;
      return done + 1;
    }};
    EXPECT_TRUE(Loop(*member.fabric, {.wait = GetParam()})
                    .add(part)
                    .run_until([&] { return turn >= kRounds; }, kPatienceMs));
  });
}

TEST(Loop, IsNotForSimulatedNodes) {
  sim::World world(sim::profile("ideal"), 2, 1);
  EXPECT_TRUE(contains(what_is_thrown_by([&] { Loop(world.fabric(1)); }),
                       "node 1 is simulated, and polled by its World"));
}

}  // namespace
}  // namespace dunlin

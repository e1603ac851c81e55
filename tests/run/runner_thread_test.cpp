#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <sched.h>

#include <dunlin/join.hpp>
#include <dunlin/run.hpp>
#include <dunlin/table.hpp>

#include "fabric/shm_group.hpp"
#include "support/policies.hpp"

namespace dunlin {
namespace {

using test::contains;
using test::fresh_group;
using test::what_is_thrown_by;

struct Row {
  Cell<int> step;
};

struct Runner : testing::TestWithParam<Wait> {
  const std::unique_ptr<Fabric> fabric =
      join({.group = fresh_group(), .members = 1, .silence_timeout_ms = 0});
  Table<Row> table{fabric};
  std::atomic<int> fired = 0;

  void count_up_to(int n) {
    table.when([n](const auto& t) { return t.mine().step < n; }).recurrent([this](auto& t) {
      ++t.mine().step;
      ++fired;
      fired.notify_one();
    });
  }
  void wait_for(int n) {
    for (int now = fired; now < n; now = fired) fired.wait(now);
  }
};

INSTANTIATE_TEST_SUITE_P(Policy, Runner, testing::ValuesIn(test::kPolicies), test::name_of_policy);

TEST_P(Runner, RunsTriggersOnItsThread) {
  count_up_to(10);
  {
    const RunnerThread runner(table, {.wait = GetParam()});
    wait_for(10);
  }
  EXPECT_EQ(table.mine().step, 10) << "the table is ours again";
}

TEST_P(Runner, EndsInItsSleepWhenDestroyed) {
  for (int i = 0; i < 50; ++i) {
    const RunnerThread runner(table, {.wait = GetParam(), .spin_us = 0});
  }
}

TEST_P(Runner, StopsAndJoins) {
  count_up_to(3);
  RunnerThread runner(table, {.wait = GetParam()});
  wait_for(3);
  runner.stop();
  runner.join();
  runner.join();
  EXPECT_EQ(table.mine().step, 3);
}

TEST_P(Runner, HandsOutWhatATriggerThrew) {
  table.when([](const auto&) { return true; }).once([] {
    throw std::runtime_error("from a trigger");
  });
  RunnerThread runner(table, {.wait = GetParam()});
  try {
    runner.join();
    FAIL() << "nothing thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "from a trigger");
  }
  runner.join();  // it is said once
}

TEST_P(Runner, CanFollowAnotherOne) {
  count_up_to(6);
  for (int round = 1; round <= 2; ++round) {
    RunnerThread runner(table, {.wait = GetParam()});
    wait_for(6);
  }
  EXPECT_EQ(table.mine().step, 6);
}

int first_usable_core() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  int core = 0;
  while (core < CPU_SETSIZE && !CPU_ISSET(static_cast<std::size_t>(core), &set)) ++core;
  return core;
}

TEST_P(Runner, PinsItsThread) {
  const int core = first_usable_core();
  std::atomic<int> ran_on = -1;
  table.when([](const auto&) { return true; }).once([&] {
    ran_on = sched_getcpu();
    ran_on.notify_one();
  });
  const RunnerThread runner(table, {.wait = GetParam(), .core = core});
  ran_on.wait(-1);
  EXPECT_EQ(ran_on, core);
}

TEST_P(Runner, SaysWhichCoreThereIsNot) {
  for (const int core : {1023, 1'000'000, -7}) {
    RunnerThread runner(table, {.wait = GetParam(), .core = core});
    EXPECT_TRUE(contains(what_is_thrown_by([&] { runner.join(); }),
                         "cannot pin its thread to core " + std::to_string(core)));
  }
}

}  // namespace
}  // namespace dunlin

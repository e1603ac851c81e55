#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <dunlin/container.hpp>
#include <dunlin/error.hpp>
#include <dunlin/fabric/sim.hpp>
#include <dunlin/join.hpp>
#include <dunlin/progress_thread.hpp>

#include "support/errors.hpp"
#include "support/fresh_group.hpp"
#include "support/node_backend.hpp"
#include "support/policies.hpp"

/// A thread that polls while the owner computes.
namespace dunlin {
namespace {

using test::contains;
using test::what_is_thrown_by;
using Map = HashMap<std::uint64_t, std::uint64_t>;

/// A part that counts its polls, and throws when it is told to.
struct Part {
  [[nodiscard]] Fabric& fabric() const { return *its_fabric; }
  std::size_t poll() {
    ++polls;
    if (throws) throw Error("a handler's");
    return its_fabric->poll();
  }
  std::unique_ptr<Fabric> its_fabric =
      join({.group = test::fresh_group(), .members = 1, .silence_timeout_ms = 0});
  std::atomic<std::uint64_t> polls = 0;
  std::atomic<bool> throws = false;
};

struct WithProgressThread : testing::TestWithParam<Wait> {
  [[nodiscard]] static ThreadOptions options() { return {.wait = GetParam(), .spin_us = 0}; }
};

INSTANTIATE_TEST_SUITE_P(Policy, WithProgressThread, testing::ValuesIn(test::kPolicies),
                         test::name_of_policy);

TEST_P(WithProgressThread, PollsWhileTheOwnerComputesAndNotElsewhere) {
  Part part;
  ProgressThread progress(part, options());
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t before = part.polls;
    const int result = progress.during([&] {
      while (part.polls == before) std::this_thread::yield();
      return round;
    });
    EXPECT_EQ(result, round);
    const std::uint64_t after = part.polls;
    part.poll();  // it is the owner's again
    EXPECT_EQ(part.polls, after + 1);
  }
}

/// Requests to a member that computes are answered before it polls again.
TEST_P(WithProgressThread, AnswersTheRequestsOfOthers) {
  const std::string group = test::fresh_group();
  const auto member = [&](Rank rank) {
    return join({.group = group,
                 .members = 2,
                 .rank = rank,
                 .timeout_ms = test::kPatienceMs,
                 .silence_timeout_ms = 0});
  };
  std::atomic<bool> begins = false, done = false;
  std::jthread other([&] {
    const auto fabric = member(1);
    Containers containers(*fabric);
    Map map(containers, {.name = "map", .slots = 1U << 10, .style = Style::message});
    while (!begins) {
      containers.poll();
      std::this_thread::yield();
    }
    for (std::uint64_t key = 0; key < 200; ++key) {
      EXPECT_EQ(map.insert(key, key + 1).outcome().status, remote::Status::ok);
      EXPECT_EQ(map.find(key).outcome().value(), key + 1);
    }
    done = true;
  });
  const auto fabric = member(0);
  Containers containers(*fabric);
  Map map(containers, {.name = "map", .slots = 1U << 10, .style = Style::message});
  ProgressThread progress(containers, options());
  progress.during([&] {
    begins = true;
    while (!done) std::this_thread::yield();
  });
  other.join();
  std::uint64_t found = 0;
  for (std::uint64_t key = 0; key < 200; ++key) found += map.home_of(key) == 0 ? 1 : 0;
  EXPECT_GT(found, 50U) << "of these keys this member answered";
}

TEST_P(WithProgressThread, ThrowsWhatAPollHasThrown) {
  Part part;
  ProgressThread progress(part, options());
  part.throws = true;
  const auto waits_for_a_poll = [&] {
    while (part.polls == 0) std::this_thread::yield();
  };
  EXPECT_EQ(what_is_thrown_by([&] { progress.during(waits_for_a_poll); }), "a handler's");
  part.throws = false;
  EXPECT_EQ(progress.during([] { return 7; }), 7) << "and goes on";
}

TEST_P(WithProgressThread, ThrowsWhatTheOwnersComputingThrows) {
  Part part;
  ProgressThread progress(part, options());
  EXPECT_EQ(
      what_is_thrown_by([&] { progress.during([]() -> int { throw Error("the owner's"); }); }),
      "the owner's");
  EXPECT_TRUE(contains(what_is_thrown_by([&] { progress.during([&] { progress.during([] {}); }); }),
                       "inside"));
  progress.during([] {});
}

TEST_P(WithProgressThread, EndsWhetherItHasPolledOrNot) {
  Part part;
  for (int i = 0; i < 50; ++i) {
    ProgressThread progress(part, options());
    if (i % 2 == 0) progress.during([] {});
  }
}

TEST(ProgressThread, RefusesASimulatedFabricAndAProcessorThatIsNotThere) {
  struct Simulated {
    [[nodiscard]] Fabric& fabric() const { return its_fabric; }
    static std::size_t poll() { return 0; }
    Fabric& its_fabric;
  };
  sim::World world(sim::profile("ib100"), 1, 1);
  Simulated simulated{world.fabric(0)};
  EXPECT_TRUE(
      contains(what_is_thrown_by([&] { const ProgressThread progress(simulated); }), "simulated"));
  Part part;
  EXPECT_TRUE(
      contains(what_is_thrown_by([&] { const ProgressThread progress(part, {.core = 1'000'000}); }),
               "cannot pin"));
}

}  // namespace
}  // namespace dunlin

#include "container/attention.hpp"

#include <initializer_list>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/container.hpp>
#include <dunlin/fabric/sim.hpp>

#include "container/hub.hpp"

/// How long a request waits for its target's poll, and that the automatic style minds it.
namespace dunlin {
namespace {

using container::PollIntervals;

/// Polls with these gaps, over and over.
double wait_after(std::initializer_list<std::uint64_t> gaps_ns, int rounds,
                  std::uint64_t slept_of_each_ns = 0) {
  PollIntervals intervals;
  std::uint64_t now_ns = 1'000;
  for (int i = 0; i < rounds; ++i)
    for (const std::uint64_t gap_ns : gaps_ns) {
      // It sleeps first.
      const std::uint64_t awake_since_ns = slept_of_each_ns == 0 ? 0 : now_ns + slept_of_each_ns;
      now_ns += gap_ns;
      if (intervals.wants_next()) intervals.note(now_ns, awake_since_ns);
    }
  return intervals.wait_ns();
}

TEST(PollIntervals, OfOneLengthMeanAWaitOfHalf) {
  EXPECT_DOUBLE_EQ(wait_after({100}, 5'000), 50);
  EXPECT_DOUBLE_EQ(wait_after({100'000}, 50), 50'000);
}

TEST(PollIntervals, ThatAreLongAreMetMoreOftenThanTheyCome) {
  // Once 100 us, and then nine polls of 100 ns: a request nearly always meets the long one.
  const double wait = wait_after({100'000, 100, 100, 100, 100, 100, 100, 100, 100, 100}, 3'000);
  EXPECT_GT(wait, 40'000);
  EXPECT_LT(wait, 50'000);
}

TEST(PollIntervals, OfSleepDoNotCount) {
  EXPECT_DOUBLE_EQ(wait_after({1'000'000}, 10'000, 999'800), 100);
}

TEST(PollIntervals, AreForgottenWhenTheirLengthChanges) {
  PollIntervals intervals;
  std::uint64_t now_ns = 1'000;
  const auto poll = [&](std::uint64_t gap_ns, int times) {
    for (int i = 0; i < times; ++i) {
      now_ns += gap_ns;
      if (intervals.wants_next()) intervals.note(now_ns, 0);
    }
  };
  poll(100'000, 50);
  poll(100, 20'000);
  EXPECT_LT(intervals.wait_ns(), 100);
  poll(100'000, 50);
  EXPECT_GT(intervals.wait_ns(), 45'000);
}

/// What it remembers is as good as what it computes, however the calls alternate.
TEST(StyleChoice, IsThatOfThePredictions) {
  std::mt19937_64 random(16);
  ComponentCosts costs;
  std::uint32_t version = 0;
  container::StyleChoice choice;
  int by_message = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (i % 500 == 0) {
      ++version;
      costs = {.read_ns = double(random() % 2'000),
               .write_ns = double(random() % 2'000),
               .compare_swap_ns = double(random() % 2'000),
               .fetch_add_ns = double(random() % 2'000),
               .message_ns = double(random() % 4'000),
               .batched_ns = double(random() % 100)};
    }
    const auto call = static_cast<Call>(random() % kCalls);
    const Situation at{.promise = static_cast<Promise>(random() % kPromises),
                       .load = double(random() % 3) / 4,
                       .tables = double(1 + random() % 3),
                       .clients = double(1 + random() % 3),
                       .count = double(1 + random() % 3),
                       .wait_ns = double(random() % 3'000)};
    const bool is_cheaper =
        predict_ns(costs, call, Style::message, at) < predict_ns(costs, call, Style::one_sided, at);
    const Style style = choice.of(costs, version, call, at);
    ASSERT_EQ(style == Style::message, costs.measured() && is_cheaper) << i;
    by_message += style == Style::message ? 1 : 0;
  }
  EXPECT_GT(by_message, 2'000);
  EXPECT_LT(by_message, 18'000);
}

TEST(AttentionInSimulator, DecidesAboutTheAutomaticStyle) {
  sim::Profile network = sim::profile("ib100");
  network.native_atomics = false;  // so that homes change words by their processors, too
  sim::World world(network, 2, 1);
  // A message is cheaper, if its target polls.
  const ComponentCosts costs{.read_ns = 2'000,
                             .write_ns = 2'000,
                             .compare_swap_ns = 2'000,
                             .fetch_add_ns = 2'000,
                             .message_ns = 1'500};
  std::vector<std::unique_ptr<Containers>> members;
  std::vector<std::unique_ptr<HashMap<std::uint64_t, std::uint64_t>>> maps;
  for (Rank rank = 0; rank < 2; ++rank) {
    members.push_back(
        std::make_unique<Containers>(world.fabric(rank), ContainersOptions{.costs = costs}));
    maps.push_back(std::make_unique<HashMap<std::uint64_t, std::uint64_t>>(
        *members[rank], MapOptions{.name = "map", .slots = 64}));
    world.attach(rank, [&member = *members[rank]] { return member.poll(); });
  }
  std::uint64_t key = 1;
  while (maps[0]->home_of(key) != 1) ++key;
  const auto assigns_by_message = [&] {
    auto call = maps[0]->assign(key, key);
    EXPECT_TRUE(world.run_until([&] { return call.finished(); }, 1'000'000'000));
    world.run_for(2'000'000);  // long enough for another look at the target's wait
    return call.result().round_trips() == 1;
  };
  EXPECT_TRUE(assigns_by_message());
  members[1]->hub().attention.publish(50'000);
  assigns_by_message();  // with what was known
  EXPECT_FALSE(assigns_by_message());
  members[1]->hub().attention.publish(0);
  assigns_by_message();
  EXPECT_TRUE(assigns_by_message());
  for (Rank rank = 0; rank < 2; ++rank) world.detach_all(rank);
  maps.clear();
  members.clear();
}

}  // namespace
}  // namespace dunlin

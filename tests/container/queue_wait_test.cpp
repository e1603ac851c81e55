#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>

#include "container/clusters.hpp"
#include "container/map.hpp"
#include "support/errors.hpp"

namespace dunlin {
namespace {

using remote::Status;
using test::contains;

constexpr std::uint64_t kSoonNs = 2'000'000;
constexpr std::uint64_t kVainNs = 200'000;

struct WaitingQueues : test::OnContainers {
  using Fifo = Queue<std::uint64_t>;
  std::vector<std::unique_ptr<Fifo>> queues;

  void start_queues(std::uint32_t members, std::uint32_t capacity) {
    start(members);
    queues = make<Fifo>(QueueOptions{.name = "queue", .capacity = capacity, .host = 1});
  }
  Status push(Rank by, std::uint64_t element) { return cluster->end_of(queues[by]->push(element)); }
  /// The element, or all bits.
  std::uint64_t pop(Rank by) {
    auto op = queues[by]->pop();
    cluster->end_of(op);
    return op.result().found() ? op.result().value() : UINT64_MAX;
  }
  /// Lets a call find nothing a few times.
  void attempt_in_vain(const remote::CallBase& op) {
    const std::uint64_t end_ns = (*cluster)[0].fabric().now_ns() + kVainNs;
    const auto is_over = [&] { return (*cluster)[0].fabric().now_ns() >= end_ns; };
    EXPECT_TRUE(cluster->until([&] { return is_over() || op.finished(); }));
    EXPECT_FALSE(op.finished());
  }
};

DUNLIN_RUN_ON(test::container_cases(), WaitingQueues);

TEST_P(WaitingQueues, APopWaitsForAnElement) {
  start_queues(3, 4);
  for (const Rank by : {0U, 1U}) {  // 1 is the host
    auto op = queues[by]->pop_wait();
    attempt_in_vain(op);
    EXPECT_EQ(push(2, 40 + by), Status::ok);
    EXPECT_EQ(cluster->end_of(op), Status::ok);
    EXPECT_TRUE(op.result().found());
    EXPECT_EQ(op.result().value(), 40 + by);
  }
}

TEST_P(WaitingQueues, APushWaitsForRoom) {
  start_queues(3, 2);
  for (const Rank by : {0U, 1U}) {
    EXPECT_EQ(push(2, 1), Status::ok);
    EXPECT_EQ(push(2, 2), Status::ok);
    auto op = queues[by]->push_wait(3);
    attempt_in_vain(op);
    EXPECT_EQ(pop(2), 1U);
    EXPECT_EQ(cluster->end_of(op), Status::ok);
    EXPECT_EQ(pop(2), 2U);
    EXPECT_EQ(pop(2), 3U);
    EXPECT_EQ(pop(2), UINT64_MAX);
  }
}

TEST_P(WaitingQueues, ACallWhoseTimeIsUpHasDoneNothing) {
  start_queues(3, 2);
  for (const Rank by : {0U, 1U}) {
    auto none = queues[by]->pop_wait(kSoonNs);
    EXPECT_EQ(cluster->end_of(none), Status::timed_out);
    EXPECT_FALSE(none.result().found());
    EXPECT_EQ(push(by, 1), Status::ok);
    EXPECT_EQ(push(by, 2), Status::ok);
    EXPECT_EQ(cluster->end_of(queues[by]->push_wait(3, kSoonNs)), Status::timed_out);
    EXPECT_EQ(pop(2), 1U);
    EXPECT_EQ(pop(2), 2U);
    EXPECT_EQ(pop(2), UINT64_MAX);
  }
}

TEST_P(WaitingQueues, ACallThatNeedNotWaitEndsAsUsual) {
  start_queues(2, 1);
  auto once = queues[0]->pop_wait(0);  // as pop()
  EXPECT_EQ(cluster->end_of(once), Status::empty);
  EXPECT_EQ(push(1, 1), Status::ok);
  auto again = queues[0]->pop_wait();
  EXPECT_EQ(cluster->end_of(again), Status::ok);
  EXPECT_EQ(again.result().vain_attempts, 0U);
}

TEST_P(WaitingQueues, AHostThatIsLateIsWaitedForSoLong) {
  start(2);
  for (const bool checked : {false, true}) {
    const QueueOptions options{.name = checked ? "late checked" : "late",
                               .capacity = 2,
                               .host = 1,
                               .style = GetParam().style,
                               .checked = checked};
    Fifo early((*cluster)[0], options);
    EXPECT_EQ(cluster->end_of(early.pop_wait(kSoonNs)), Status::timed_out);
    auto push = early.push_wait(7);
    Fifo late((*cluster)[1], options);
    EXPECT_EQ(cluster->end_of(push), Status::ok);
    auto pop = late.pop_wait();
    EXPECT_EQ(cluster->end_of(pop), Status::ok);
    EXPECT_EQ(pop.result().value(), 7U);
  }
}

TEST_P(WaitingQueues, LoseAndDoubleNothing) {
  start_queues(3, 2);
  constexpr std::uint64_t kEach = 50;
  std::vector<Fifo::Push> pushes;
  std::vector<Fifo::Pop> pops;
  std::vector<std::uint64_t> pushed(3), popped;
  for (Rank rank = 0; rank < 3; ++rank) {
    pushes.push_back(queues[rank]->push_wait(rank * kEach));
    pops.push_back(queues[rank]->pop_wait());
  }
  EXPECT_TRUE(cluster->until([&] {
    for (Rank rank = 0; rank < 3; ++rank) {
      if (pushes[rank].finished() && pushed[rank] < kEach) {
        EXPECT_EQ(pushes[rank].status(), Status::ok);
        if (++pushed[rank] < kEach)
          pushes[rank] = queues[rank]->push_wait(rank * kEach + pushed[rank]);
      }
      if (pops[rank].finished()) {
        EXPECT_EQ(pops[rank].status(), Status::ok);
        popped.push_back(pops[rank].result().value());
        pops[rank] = queues[rank]->pop_wait();
      }
    }
    return popped.size() >= 3 * kEach;
  }));
  std::sort(popped.begin(), popped.end());
  std::vector<std::uint64_t> all(3 * kEach);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(popped, all);
  for (const auto& op : pops) EXPECT_FALSE(op.finished());
}

TEST_P(WaitingQueues, AnAbandonedCallBlocksNobody) {
  start_queues(3, 2);
  EXPECT_EQ(push(2, 1), Status::ok);
  EXPECT_EQ(push(2, 2), Status::ok);
  auto given_up = queues[0]->push_wait(3);
  attempt_in_vain(given_up);
  given_up.abandon();
  EXPECT_EQ(pop(1), 1U);
  EXPECT_EQ(pop(1), 2U);
  EXPECT_EQ(cluster->end_of(queues[2]->push_wait(4)), Status::ok);
  auto last = queues[0]->pop_wait();
  EXPECT_EQ(cluster->end_of(last), Status::ok);
  EXPECT_EQ(last.result().value(), 4U);
}

TEST_P(WaitingQueues, ACallThatWaitsIsCheckedAllTheTime) {
  start(3);
  queues = make<Fifo>(QueueOptions{.name = "queue", .capacity = 2, .host = 1, .checked = true});
  auto pop = queues[0]->pop_wait(remote::kForever, Promise::reads);
  attempt_in_vain(pop);
  auto push = queues[2]->push(7, Promise::both);
  EXPECT_EQ(cluster->end_of(push), Status::broken_promise);
  EXPECT_TRUE(contains((*cluster)[2].broken_promise(), "pop of member '"));
  pop.abandon();
}

TEST_P(WaitingQueues, AMemberAloneWaitsInVain) {
  start(1);
  Fifo queue((*cluster)[0], {.name = "queue", .capacity = 1, .host = 0, .style = GetParam().style});
  EXPECT_EQ(queue.push_wait(1).outcome().status, Status::ok);
  EXPECT_EQ(queue.pop_wait().outcome().value(), 1U);
  EXPECT_EQ(cluster->end_of(queue.pop_wait(kSoonNs)), Status::timed_out);
}

/// Where a push of the process itself would else be found when the rest is over.
TEST_P(WaitingQueues, APushOfTheSameProcessWakesIt) {
  start_queues(2, 4);
  Fabric& fabric = (*cluster)[1].fabric();
  if (fabric.kind() != "shm") GTEST_SKIP() << "no doorbell of one's own";
  auto pop = queues[1]->pop_wait();
  attempt_in_vain(pop);
  fabric.prepare_sleep();
  auto push = queues[1]->push(3);
  pollfd bell{fabric.wait_descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&bell, 1, 0), 1);
  fabric.cancel_sleep();
  EXPECT_EQ(cluster->end_of(push), Status::ok);
  EXPECT_EQ(cluster->end_of(pop), Status::ok);
}

/// A call that rests sees in each poll whether something has come.
TEST(WaitingQueuesInSimulator, EndTheirRestsWithAPush) {
  test::SimContainers cluster(sim::profile("ib100"), 2);
  const QueueOptions options{.name = "queue", .capacity = 2, .host = 1, .style = Style::message};
  std::vector<std::unique_ptr<Queue<int>>> queues;
  for (Rank rank = 0; rank < 2; ++rank)
    queues.push_back(std::make_unique<Queue<int>>(cluster[rank], options));
  const auto now_ns = [&] { return cluster[1].fabric().now_ns(); };
  for (std::uint64_t waited_ns = 1'000'000; waited_ns < 1'128'000; waited_ns += 16'000) {
    auto pop = queues[1]->pop_wait();
    const std::uint64_t push_at_ns = now_ns() + waited_ns;
    EXPECT_TRUE(cluster.until([&] { return now_ns() >= push_at_ns; }));
    auto push = queues[0]->push(7);
    EXPECT_EQ(cluster.end_of(push), Status::ok);
    const std::uint64_t pushed_at_ns = now_ns();
    EXPECT_EQ(cluster.end_of(pop), Status::ok);
    EXPECT_LE(now_ns() - pushed_at_ns, 2'000U);
  }
}

/// CON-Q6 bounds the attempts, and so what is posted.
TEST(WaitingQueuesInSimulator, RestBetweenTheirAttempts) {
  constexpr std::uint64_t kWaitNs = 20'000'000;
  for (const Style style : {Style::one_sided, Style::message}) {
    test::SimContainers cluster(sim::profile("ib100"), 2);
    const QueueOptions options{.name = "queue", .capacity = 2, .host = 1, .style = style};
    std::vector<std::unique_ptr<Queue<int>>> queues;
    for (Rank rank = 0; rank < 2; ++rank)
      queues.push_back(std::make_unique<Queue<int>>(cluster[rank], options));
    auto pop = queues[0]->pop_wait(kWaitNs);
    EXPECT_EQ(cluster.end_of(pop), Status::timed_out);
    EXPECT_LE(pop.result().vain_attempts, kWaitNs / 128'000 + 9);  // 0.5, 1, ... 128 us
    EXPECT_GE(pop.result().vain_attempts, kWaitNs / 128'000 / 2);
  }
}

/// A find that waits for another call's step looks again after 16 us, or later if looking takes
/// long: else a few such calls would fill a short queue, and keep the group from it.
TEST(WaitingFindsInSimulator, RestLongerWhereTheNetworkIsSlow) {
  sim::Profile slow = sim::profile("ib100");
  slow.read_latency_ns = 50'000;
  for (const sim::Profile& network : {sim::profile("ib100"), slow}) {
    test::SimContainers cluster(network, 2);
    using Map = HashMap<std::uint64_t, std::uint64_t>;
    std::vector<std::unique_ptr<Map>> maps;
    for (Rank rank = 0; rank < 2; ++rank)
      maps.push_back(std::make_unique<Map>(
          cluster[rank], MapOptions{.name = "map", .slots = 1, .style = Style::one_sided}));
    std::uint64_t key = 1;
    while (maps[0]->home_of(key) != 1) ++key;
    auto insert = maps[0]->insert(key, 7);
    EXPECT_EQ(cluster.end_of(insert), Status::ok);
    auto& home = static_cast<container::MapState&>(*cluster[1].hub().served.begin()->second);
    auto& word = *reinterpret_cast<std::uint64_t*>(home.own(home.first, 0));
    const std::uint64_t ready = word;
    word = container::word::with_state(ready, container::word::changing);
    auto find = maps[0]->find(key);
    const std::uint64_t end_ns = cluster[0].fabric().now_ns() + 20'000'000;
    EXPECT_TRUE(cluster.until([&] { return cluster[0].fabric().now_ns() >= end_ns; }));
    EXPECT_FALSE(find.finished());
    const bool is_slow = network.read_latency_ns > 10'000;
    const std::uint32_t most = is_slow ? 20'000 / (50 + 128) + 9 : 20'000 / 16 + 9;
    word = ready;
    EXPECT_EQ(cluster.end_of(find), Status::ok);
    EXPECT_TRUE(find.result().found());
    EXPECT_LE(find.result().round_trips(), most + 1);
    EXPECT_GE(find.result().round_trips(), most / 2);
  }
}

}  // namespace
}  // namespace dunlin

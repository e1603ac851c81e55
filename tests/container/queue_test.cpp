#include "container/queue.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include <dunlin/fabric/memory.hpp>

#include "container/clusters.hpp"
#include "support/errors.hpp"

namespace dunlin {
namespace {

using remote::Status;
using test::contains;
using test::what_is_thrown_by;

struct Queues : test::OnContainers {
  using Fifo = Queue<std::uint64_t>;
  std::vector<std::unique_ptr<Fifo>> queues;

  void start_queues(std::uint32_t members, std::uint32_t capacity) {
    start(members);
    queues = make<Fifo>(QueueOptions{.name = "queue", .capacity = capacity, .host = 1});
  }
  Status push(Rank by, std::uint64_t element, Promise promise = Promise::both) {
    return cluster->end_of(queues[by]->push(element, promise));
  }
  /// The element, or all bits.
  std::uint64_t pop(Rank by, Promise promise = Promise::both) {
    auto op = queues[by]->pop(promise);
    const Status status = cluster->end_of(op);
    EXPECT_TRUE(status == Status::ok || status == Status::empty) << remote::describe(status);
    return op.result().found() ? op.result().value() : UINT64_MAX;
  }
};

DUNLIN_RUN_ON(test::container_cases(), Queues);

TEST_P(Queues, BehavesAsAStandardQueueDoes) {
  start_queues(3, 7);
  std::deque<std::uint64_t> model;
  std::size_t marks = 0;  // at most: a push that ended `full` may have left one (CON-Q3)
  std::mt19937_64 random(5);
  for (std::uint64_t i = 0; i < 500; ++i) {
    const auto by = static_cast<Rank>(random() % 3);
    if (random() % 2 == 0) {
      const Status status = push(by, i);
      EXPECT_TRUE(status == Status::ok ? model.size() < 7 : model.size() + marks >= 7) << i;
      if (status == Status::ok) model.push_back(i);
      if (status == Status::full) ++marks;
    } else {
      if (model.empty()) marks = 0;
      EXPECT_EQ(pop(by), model.empty() ? UINT64_MAX : model.front()) << i;
      if (!model.empty()) model.pop_front();
    }
  }
}

TEST_P(Queues, PhasesOfPushesAndOfPops) {
  start_queues(3, 30);
  for (std::uint64_t round = 0; round < 4; ++round) {
    for (std::uint64_t i = 0; i < 30; ++i)
      EXPECT_EQ(push(static_cast<Rank>(i % 3), round * 100 + i, Promise::writes), Status::ok);
    EXPECT_EQ(push(2, 999, Promise::writes), Status::full);  // it has made the last push
    for (std::uint64_t i = 0; i < 30; ++i)
      EXPECT_EQ(pop(static_cast<Rank>((i + 1) % 3), Promise::reads), round * 100 + i);
    EXPECT_EQ(pop(2, Promise::reads), UINT64_MAX);
  }
}

TEST_P(Queues, TheHostAloneUsesItsOwnMemory) {
  start_queues(2, 5);
  for (std::uint64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(push(1, i, Promise::local), Status::ok);
    EXPECT_EQ(pop(1, Promise::local), i);
  }
  EXPECT_EQ(pop(1, Promise::local), UINT64_MAX);
}

/// A slot that is written too early (CON-Q2) would lose an element.
TEST_P(Queues, NothingIsLostOrDoubledWhenAllPushAndPopAtOnce) {
  start_queues(3, 8);
  constexpr std::uint64_t kEach = 100;
  struct Worker {
    Fifo::Push push;
    Fifo::Pop pop;
    std::uint64_t pushed = 0;
    bool under_way = false;
  };
  std::vector<Worker> workers(3);
  std::vector<std::uint64_t> popped;
  const bool done = cluster->until([&] {
    for (Rank rank = 0; rank < 3; ++rank) {
      Worker& worker = workers[rank];
      if (worker.push.finished()) {
        if (worker.under_way && worker.push.ok()) ++worker.pushed;
        worker.under_way = worker.pushed < kEach;
        if (worker.under_way) worker.push = queues[rank]->push(rank * 1000 + worker.pushed + 1);
      }
      if (worker.pop.finished()) {
        if (worker.pop.result().found()) popped.push_back(worker.pop.result().value());
        worker.pop = queues[rank]->pop();
      }
    }
    return popped.size() >= 3 * kEach;
  });
  EXPECT_TRUE(done) << popped.size();
  std::vector<std::uint64_t> expected;
  for (std::uint64_t rank = 0; rank < 3; ++rank)
    for (std::uint64_t i = 1; i <= kEach; ++i) expected.push_back(rank * 1000 + i);
  std::sort(popped.begin(), popped.end());
  EXPECT_EQ(popped, expected);
}

TEST_P(Queues, AnAbandonedPushBlocksNobody) {
  start_queues(2, 4);
  for (std::uint64_t i = 0; i < 60; ++i) {
    auto op = queues[0]->push(1000 + i);
    cluster->pass(i % 20);
    op.abandon();
    Status status = Status::full;
    for (int tries = 0; tries < 100'000 && status == Status::full; ++tries) status = push(1, i);
    EXPECT_EQ(status, Status::ok);
    std::uint64_t popped = UINT64_MAX;
    for (int tries = 0; tries < 100'000 && popped != i; ++tries) {
      popped = pop(1);
      EXPECT_TRUE(popped == UINT64_MAX || popped == i || popped >= 1000) << popped;
    }
    EXPECT_EQ(popped, i);
  }
}

TEST_P(Queues, WideElementsComeWhole) {
  start(2);
  struct Wide {
    std::array<std::uint64_t, 50> words;
  };
  auto wide = make<Queue<Wide>>(QueueOptions{.name = "wide", .capacity = 3, .host = 0});
  Queue<Wide>::Push in;
  Queue<Wide>::Pop out;
  std::uint64_t pushed = 0, popped = 0;
  EXPECT_TRUE(cluster->until([&] {
    if (in.finished()) {
      if (in.ok() && in.result().count > 0) ++pushed;
      Wide element;
      element.words.fill(pushed);
      in = wide[1]->push(element);
    }
    if (out.finished()) {
      if (out.result().found()) {
        for (const std::uint64_t word : out.result().value().words) EXPECT_EQ(word, popped);
        ++popped;
      }
      out = wide[1]->pop();
    }
    return popped >= 100;
  }));
}

TEST_P(Queues, TellTheirSizeAsFarAsAMemberKnowsIt) {
  if (GetParam().style != Style::one_sided) GTEST_SKIP() << "the host alone sees the ends";
  start_queues(2, 16);
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(push(0, i), Status::ok);
  EXPECT_EQ(queues[0]->size(), 5U);
  EXPECT_EQ(queues[1]->size(), 5U);
  for (std::uint64_t i = 0; i < 2; ++i) EXPECT_EQ(pop(0), i);
  EXPECT_EQ(queues[0]->size(), 3U);
}

TEST_P(Queues, PushAllOfMoreThanAMessageHoldsOrNone) {
  if (GetParam().style == Style::message) GTEST_SKIP() << "it takes what a message holds";
  start(2);
  const auto cores = make<container::QueueCore>(
      container::QueueSpec{.name = "wide", .element_bytes = 8, .capacity = 64, .host = 1});
  const std::array<std::uint64_t, 40> elements{};
  const auto push_some = [&](std::uint32_t count) {
    remote::Call<container::QueueOutcome> push(
        (*cluster)[0].progress(),
        cores[0]->push(std::as_bytes(std::span(elements)).data(), count,
                       {.promise = Promise::both, .style = Style::message}));
    return cluster->end_of(push);
  };
  EXPECT_EQ(push_some(28), Status::ok);
  EXPECT_EQ(push_some(40), Status::full);
  remote::Call<container::PoppedElements> popped((*cluster)[1].progress(), cores[1]->pop(64, {}));
  EXPECT_EQ(cluster->end_of(popped), Status::ok);
  EXPECT_EQ(popped.result().count, 28U);
  popped = {(*cluster)[1].progress(), cores[1]->pop(64, {})};
  EXPECT_EQ(cluster->end_of(popped), Status::empty);
}

/// A member keeps the address of the host's memory from one call to the next.
TEST_P(Queues, AreLostOnceTheHostHasReleasedThem) {
  start_queues(2, 16);
  for (std::uint64_t i = 0; i < 2; ++i) EXPECT_EQ(push(0, i), Status::ok);
  queues[1].reset();
  cluster->pass(1000);
  EXPECT_EQ(push(0, 2), Status::lost);
}

TEST_P(Queues, PushesAndPopsManyAtOnce) {
  start(1);
  Fifo queue((*cluster)[0],
             {.name = "many", .capacity = 100, .host = 0, .style = GetParam().style});
  std::vector<std::uint64_t> elements(70);
  std::uint64_t next = 0, expected = 0;
  for (int round = 0; round < 5; ++round) {
    for (auto& element : elements) element = next++;
    EXPECT_EQ(queue.push_many(elements), Status::ok);
    EXPECT_EQ(queue.push_many(elements), Status::full);
    std::vector<std::uint64_t> to(40);
    while (expected < next) {
      std::size_t count = 0;
      ASSERT_EQ(queue.pop_many(to, count), Status::ok);
      for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(to[i], expected++);
    }
    std::size_t count = 1;
    EXPECT_EQ(queue.pop_many(to, count), Status::empty);
    EXPECT_EQ(count, 0U);
  }
}

TEST_P(Queues, SayHowManyOfManyWerePushed) {
  start(1);
  Fifo queue((*cluster)[0], {.name = "many", .capacity = 40, .style = GetParam().style});
  const std::vector<std::uint64_t> elements(30);
  std::size_t pushed = 7;
  EXPECT_EQ(queue.push_many(elements, pushed), Status::ok);
  EXPECT_EQ(pushed, 30U);
  EXPECT_EQ(queue.push_many(elements, pushed), Status::full);
  EXPECT_EQ(pushed, 0U);
  EXPECT_EQ(queue.push_many(std::span(elements.data(), (std::size_t{1} << 32) + 1), pushed),
            Status::out_of_range);
  EXPECT_EQ(pushed, 0U);
  EXPECT_EQ(queue.size(), 30U);
}

/// One thread polls the host, whose queue takes as many at a time as a message holds.
TEST(QueuesByMessage, SayHowManyWerePushedBeforeTheyWereFull) {
  const auto backends = test::cluster_backends<test::ContainerCluster>();
  const auto shm = std::ranges::find(backends, "Shm", &test::ContainerBackend::name);
  ASSERT_NE(shm, backends.end());
  const auto cluster = shm->start(2, {});
  const QueueOptions options{.name = "many", .capacity = 60, .host = 1, .style = Style::message};
  Queue<std::uint64_t> queue((*cluster)[0], options), there((*cluster)[1], options);
  const std::jthread polls([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) there.poll();
  });
  const std::vector<std::uint64_t> elements(56);
  std::size_t pushed = 0;
  EXPECT_EQ(queue.push_many(std::span(elements).first(10), pushed), Status::ok);
  EXPECT_EQ(pushed, 10U);
  EXPECT_EQ(queue.push_many(elements, pushed), Status::full);
  EXPECT_EQ(pushed, 28U);
}

/// The host alone, which has heard that members have died.
struct DamagedQueues : testing::Test {
  DamagedQueues() {
    world.attach(0, [this] { return containers.poll(); });
  }
  ~DamagedQueues() override { world.detach_all(0); }
  void recover(std::uint64_t tail, std::uint64_t head = 0) {
    memory::store(state.own_word(container::kTailOffset), tail);
    memory::store(state.own_word(container::kHeadOffset), head);
    world.on(0, [this] { state.members_changed(); });
    settle();
  }
  /// Marks come, as far as there is room.
  void settle() { world.run_for(1'000'000); }
  [[nodiscard]] std::uint64_t head() const {
    return memory::load(state.own_word(container::kHeadOffset));
  }
  Status pop() {
    std::uint64_t element = 0;
    std::uint32_t count = 1;
    return state.begin(nullptr, reinterpret_cast<std::byte*>(&element), count,
                       {.promise = Promise::local});
  }
  Status push() {
    const std::uint64_t element = 0;
    std::uint32_t count = 1;
    return state.begin(reinterpret_cast<const std::byte*>(&element), nullptr, count,
                       {.promise = Promise::local});
  }
  sim::World world{sim::profile("ideal"), 1, 1};
  Containers containers{world.fabric(0)};
  container::QueueState state{containers, {.name = "q", .element_bytes = 8, .capacity = 8}};
};

TEST_F(DamagedQueues, MarkTicketsThatNoMemberHas) {
  recover(5);
  EXPECT_EQ(pop(), Status::empty);
  EXPECT_EQ(head(), 5U);
  EXPECT_EQ(containers.why_refused(), "");
}

TEST_F(DamagedQueues, MarkMoreThanTheCapacityAsTheHeadMakesRoom) {
  recover(20);
  for (int polls = 0; polls < 4; ++polls) {
    static_cast<void>(pop());
    settle();
  }
  EXPECT_EQ(pop(), Status::empty);
  EXPECT_EQ(head(), 20U);
}

/// A pop under a promise has taken more than there was, and its member has died.
TEST_F(DamagedQueues, MendAHeadThatTheDeadHaveMovedTooFar) {
  memory::store(state.own_word(container::kHeadOffset), 3);
  EXPECT_EQ(push(), Status::under_way) << "CON-Q8";
  EXPECT_EQ(pop(), Status::empty);
  recover(0, 3);
  EXPECT_EQ(head(), 0U);
  EXPECT_EQ(push(), Status::ok);
  EXPECT_EQ(pop(), Status::ok);
}

TEST_F(DamagedQueues, SayThatAPeerHasDamagedTheTail) {
  recover(std::uint64_t{1} << 60);  // a search of all of them would never end
  EXPECT_TRUE(contains(containers.why_refused(), "queue 'q': its tail is 1152921504606846976"));
  EXPECT_EQ(pop(), Status::under_way);
}

TEST(QueueErrors, NameWhatIsWrong) {
  sim::World world(sim::profile("ideal"), 1, 1);
  Containers containers(world.fabric(0));
  using Fifo = Queue<int>;
  EXPECT_TRUE(contains(what_is_thrown_by([&] { Fifo(containers, {.name = "q"}); }), "capacity"));
  EXPECT_TRUE(contains(
      what_is_thrown_by([&] { Fifo(containers, {.name = "q", .capacity = 1, .host = 3}); }),
      "no member 3"));
}

/// Members of which the last one is the host.
struct QueuesOfWhichOneGoes : testing::Test {
  void make(std::uint32_t members) {
    cluster.emplace(sim::profile("ib100"), members);
    for (Rank rank = 0; rank < members; ++rank)
      queues.push_back(std::make_unique<container::QueueState>(
          (*cluster)[rank],
          container::QueueSpec{
              .name = "q", .element_bytes = 8, .capacity = 4, .host = members - 1}));
  }
  [[nodiscard]] std::uint64_t at_host(std::uint64_t offset) const {
    return memory::load(queues.back()->own_word(offset));
  }
  remote::Call<container::PoppedElements> begin_push(Rank by, std::uint64_t element) {
    return {(*cluster)[by].progress(),
            queues[by]->run(std::as_bytes(std::span(&element, 1)).data(), 1, {})};
  }
  remote::Call<container::PoppedElements> begin_pop(Rank by, Promise promise) {
    return {(*cluster)[by].progress(), queues[by]->run(nullptr, 1, {.promise = promise})};
  }
  std::uint64_t pop(Rank by, Promise promise) {
    auto call = begin_pop(by, promise);
    EXPECT_EQ(remote::describe(cluster->end_of(call)), "done");
    std::uint64_t element = 0;
    if (call.ok()) std::memcpy(&element, call.result().elements, sizeof element);
    return element;
  }
  std::optional<test::SimContainers> cluster;
  std::vector<std::unique_ptr<container::QueueState>> queues;
};

/// The pop has moved the head beyond the tail, and cannot move it back any more (CON-Q7).
TEST_F(QueuesOfWhichOneGoes, LoseNothingThatIsPushedAfterAPopThatWasGivenUp) {
  make(3);
  EXPECT_EQ(cluster->end_of(begin_push(0, 5)), Status::ok);
  EXPECT_EQ(pop(1, Promise::reads), 5U);
  auto given_up = begin_pop(0, Promise::reads);
  EXPECT_TRUE(cluster->until([&] { return at_host(container::kHeadOffset) == 2; }));
  given_up.abandon();
  queues[0].reset();
  cluster->world.run_for(1'000'000);
  EXPECT_EQ(cluster->end_of(begin_push(1, 7)), Status::ok);
  EXPECT_EQ(pop(1, Promise::both), 7U);
}

/// The push has a ticket, and no element for it (CON-Q3).
TEST_F(QueuesOfWhichOneGoes, WaitForNoElementOfAPushThatWasGivenUp) {
  make(3);
  auto given_up = begin_push(0, 5);
  EXPECT_TRUE(cluster->until([&] { return at_host(container::kTailOffset) == 1; }));
  given_up.abandon();
  queues[0].reset();
  EXPECT_EQ(cluster->end_of(begin_push(1, 7)), Status::ok);
  EXPECT_EQ(pop(1, Promise::both), 7U);
}

/// It has a ticket when the host begins to ask for those of the living.
TEST_F(QueuesOfWhichOneGoes, AskAMemberWhoseQueueTheyHaveYetToHearOf) {
  make(2);
  container::QueueState& host = *queues[1];
  cluster->world.detach_all(1);
  const auto push = begin_push(0, 5);
  EXPECT_TRUE(cluster->until([&] { return at_host(container::kTailOffset) == 1; }));
  cluster->world.detach_all(0);
  cluster->world.on(1, [&] {
    host.must_collect = true;
    host.poll_part();
  });
  cluster->world.attach(1, [&] { return (*cluster)[1].poll(); });
  cluster->world.run_for(1'000'000);
  EXPECT_TRUE(host.collecting);
  cluster->world.attach(0, [&] { return (*cluster)[0].poll(); });
  EXPECT_TRUE(cluster->until([&] { return push.finished(); }));
  EXPECT_EQ(pop(1, Promise::both), 5U);
}

}  // namespace
}  // namespace dunlin

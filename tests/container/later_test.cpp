#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "container/clusters.hpp"
#include "container/queue.hpp"

/// A member that joined its group later, and dies amid its calls. (Other suites run with such a
/// member as with founders: container_cases().)
namespace dunlin {
namespace {

using remote::Status;
using Map = HashMap<std::uint64_t, std::uint64_t>;
using Fifo = Queue<std::uint64_t>;

constexpr Rank kLater = 2;

TEST(LaterMembersInSimulator, FindKeysWhereTheFoundersDo) {
  test::LaterContainers cluster(3, {});
  const MapOptions options{.name = "map", .slots = 50};
  Map founders(cluster[0], options), later(cluster[kLater], options);
  for (std::uint64_t key = 0; key < 100; ++key) {
    EXPECT_EQ(founders.home_of(key), later.home_of(key)) << "CON-J1";
    EXPECT_LT(later.home_of(key), kLater) << "CON-J1";
  }
  EXPECT_EQ(later.local_use().slots, 0U);
}

/// CON-Q7, CON-Q8: the host may still mend its head, and does not ask who has made the queue since.
TEST(LaterMembersInSimulator, TakeNoTicketsAndPushBehindWhatIsMended) {
  test::LaterContainers cluster(3, {});
  const container::QueueSpec spec{
      .name = "queue", .element_bytes = 8, .capacity = 8, .host = 0, .style = Style::one_sided};
  container::QueueState host(cluster[0], spec), later(cluster[kLater], spec);
  EXPECT_FALSE(later.takes_head({.promise = Promise::reads}));
  EXPECT_FALSE(later.is_mended());
  EXPECT_TRUE(host.is_mended());
  const std::array<std::byte, 8> element{};
  remote::Call<container::PoppedElements> push(cluster[kLater].progress(),
                                               later.run(element.data(), 1, {}));
  EXPECT_EQ(cluster.end_of(push), Status::ok);
  EXPECT_TRUE(later.is_mended());
}

/// A member that comes does not end the calls of others, and what it has reserved stays its own.
/// When it dies, the others go on.
TEST(LaterMembersInSimulator, HoldNobodyUpWhenTheyDie) {
  for (std::uint64_t events = 0; events < 100 && !testing::Test::HasFailure(); events += 3) {
    test::LaterContainers cluster(3, {});
    const MapOptions options{.name = "map", .slots = 20, .style = Style::one_sided};
    const QueueOptions queue{.name = "queue", .capacity = 8, .host = 0, .style = Style::one_sided};
    std::vector<std::unique_ptr<Map>> maps;
    std::vector<std::unique_ptr<Fifo>> queues;
    for (Rank rank = 0; rank < 3; ++rank) {
      maps.push_back(std::make_unique<Map>(cluster[rank], options));
      queues.push_back(std::make_unique<Fifo>(cluster[rank], queue));
    }
    EXPECT_EQ(cluster.end_of(maps[kLater]->insert(100, 1)), Status::ok);  // it is connected
    EXPECT_EQ(cluster.end_of(queues[kLater]->push(1)), Status::ok);
    std::array<Map::Operation, 4> dying;
    for (std::uint64_t key = 0; key < dying.size(); ++key)
      dying[key] = maps[kLater]->insert(key, kLater);
    auto push = queues[kLater]->push(2);
    cluster.pass(events);
    cluster.world.crash(kLater);
    for (std::uint64_t key = 0; key < dying.size(); ++key)
      EXPECT_EQ(remote::describe(cluster.end_of(maps[key % 2]->insert(key, 7))), "done")
          << "CON-J2, CON-P4: after " << events << " events";
    EXPECT_EQ(cluster.end_of(queues[1]->push(3)), Status::ok);
    std::uint64_t last = 0;
    while (last != 3) {
      auto pop = queues[1]->pop_wait();
      ASSERT_EQ(remote::describe(cluster.end_of(pop)), "done") << "CON-J2: " << events;
      EXPECT_GT(pop.result().value(), last) << "CON-Q1";
      last = pop.result().value();
    }
    std::map<std::uint64_t, int> times;
    for (Rank rank = 0; rank < kLater; ++rank)
      maps[rank]->for_each_local([&](std::uint64_t key, std::uint64_t) { ++times[key]; });
    EXPECT_EQ(times.size(), dying.size() + 1);
    for (const auto& [key, count] : times) EXPECT_EQ(count, 1) << "CON-M2: " << key;
  }
}

}  // namespace
}  // namespace dunlin

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/container.hpp>
#include <dunlin/fabric/sim.hpp>

#include "container/clusters.hpp"
#include "container/queue.hpp"
#include "support/errors.hpp"

/// The automatic style where atomics of the network and of processors do not exclude each other: it
/// is settled when a container is made, but for finds (CON-A3).
namespace dunlin {
namespace {

using remote::Status;
using test::contains;

using Map = HashMap<std::uint64_t, std::uint64_t>;

ComponentCosts costs_with(double message_ns) {
  return {.read_ns = 1'000,
          .write_ns = 1,
          .compare_swap_ns = 1,
          .fetch_add_ns = 1,
          .message_ns = message_ns};
}

/// Two members of a network with atomics of its own, which know what it costs.
struct SettledContainers {
  explicit SettledContainers(std::array<double, 2> message_ns)
      : world(sim::profile("ib100"), 2, 1) {
    for (Rank rank = 0; rank < 2; ++rank) {
      members.push_back(std::make_unique<Containers>(
          world.fabric(rank), ContainersOptions{.costs = costs_with(message_ns.at(rank))}));
      maps.push_back(
          std::make_unique<Map>(*members[rank], MapOptions{.name = "map", .slots = 500}));
      queues.push_back(std::make_unique<container::QueueState>(
          *members[rank],
          container::QueueSpec{.name = "queue", .element_bytes = 8, .capacity = 64, .host = 1}));
      world.attach(rank, [&member = *members[rank]] { return member.poll(); });
    }
    world.run_for(1'000'000);
    while (maps[0]->home_of(key) != 1) ++key;
  }
  ~SettledContainers() {
    for (Rank rank = 0; rank < 2; ++rank) world.detach_all(rank);
  }
  SettledContainers(const SettledContainers&) = delete;
  SettledContainers& operator=(const SettledContainers&) = delete;

  template <class Call>
  Status end(Call& call) {
    EXPECT_TRUE(world.run_until([&] { return call.finished(); }, 1'000'000'000)) << "a call hangs";
    return call.status();
  }
  /// How many round trips the call takes.
  std::uint32_t trips(Map::Operation call) {
    EXPECT_EQ(end(call), Status::ok);
    return call.result().round_trips();
  }
  /// Whether a find by member 0 is a request and its reply, and no read.
  bool finds_by_message(Style style = Style::automatic) {
    std::uint64_t before = 0;
    for (int i = 0; i < 3; ++i) {  // before the last one, it has heard how attentive the home is
      before = world.operations();
      auto find = maps[0]->find(key, Promise::both, style);
      EXPECT_EQ(end(find), Status::ok);
      EXPECT_TRUE(find.result().found());
    }
    return world.operations() - before == 2;
  }
  /// Pushes at member 0, whose host is member 1, and pops at both.
  std::uint64_t queue_calls_by_message() {
    for (std::uint64_t element = 1; element <= 2; ++element) {
      remote::Call<container::PoppedElements> push(
          members[0]->progress(),
          queues[0]->run(reinterpret_cast<const std::byte*>(&element), 1, {}));
      EXPECT_EQ(end(push), Status::ok);
    }
    for (Rank by = 0; by < 2; ++by) {
      remote::Call<container::PoppedElements> pop(members[by]->progress(),
                                                  queues[by]->run(nullptr, 1, {}));
      EXPECT_EQ(end(pop), Status::ok);
      EXPECT_EQ(container::word_at(pop.result().elements), by + 1);
    }
    return queues[0]->counters.by_message.value();
  }

  sim::World world;
  std::vector<std::unique_ptr<Containers>> members;
  std::vector<std::unique_ptr<Map>> maps;
  std::vector<std::unique_ptr<container::QueueState>> queues;
  std::uint64_t key = 1;
};

TEST(SettledStyle, IsMessageWhereTheCallsThatWriteTakeLessTimeSo) {
  SettledContainers at({500, 500});
  EXPECT_FALSE(at.world.fabric(0).properties().atomics_coherent_with_cpu);
  EXPECT_EQ(at.trips(at.maps[0]->insert(at.key, 1)), 1U);
  EXPECT_EQ(at.trips(at.maps[0]->assign(at.key, 2, Promise::both, Style::one_sided)), 1U)
      << "CON-A1: what one call asks for does not count";
  EXPECT_EQ(at.trips(at.maps[1]->assign(at.key, 3)), 0U) << "the home, by its processor";
  EXPECT_TRUE(at.finds_by_message());
  EXPECT_FALSE(at.finds_by_message(Style::one_sided));
  EXPECT_EQ(at.queue_calls_by_message(), 3U);
}

TEST(SettledStyle, IsOneSidedWhereTheyDoNot) {
  SettledContainers at({9'000, 9'000});
  EXPECT_EQ(at.trips(at.maps[0]->insert(at.key, 1, Promise::both, Style::message)), 2U)
      << "CON-A1: what one call asks for does not count";
  EXPECT_GT(at.trips(at.maps[1]->assign(at.key, 3)), 1U) << "the home, too, by the fabric";
  EXPECT_FALSE(at.finds_by_message());
  EXPECT_TRUE(at.finds_by_message(Style::message));
  EXPECT_EQ(at.queue_calls_by_message(), 0U);
}

/// A find takes 1,192 ns one-sided, and an insert, an assign and an erase together 3,121.
TEST(SettledStyle, OfAOneSidedMapLetsFindsGoByMessage) {
  SettledContainers at({1'100, 1'100});
  EXPECT_EQ(at.trips(at.maps[0]->insert(at.key, 1)), 2U);
  EXPECT_TRUE(at.finds_by_message());
}

TEST(SettledStyle, OfAContainerStaysWhenTheCostsChange) {
  SettledContainers at({500, 500});
  for (const auto& member : at.members) member->set_costs(costs_with(9'000));
  EXPECT_EQ(at.trips(at.maps[0]->insert(at.key, 1)), 1U);
}

TEST(SettledStyle, ThatDiffersIsRefusedAndBothSidesAreTold) {
  SettledContainers at({500, 9'000});
  auto insert = at.maps[0]->insert(at.key, 1);
  EXPECT_EQ(at.end(insert), Status::refused);
  for (const auto& member : at.members)
    EXPECT_TRUE(contains(member->why_refused(), "'writes_by_message' is '"))
        << member->why_refused();
}

}  // namespace
}  // namespace dunlin

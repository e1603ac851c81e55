#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/container.hpp>
#include <dunlin/fabric/sim.hpp>
#include <dunlin/join.hpp>

#include "support/errors.hpp"
#include "support/fresh_group.hpp"
#include "support/process.hpp"

/// Containers that cannot be, that differ at two members, and those of a forked child.
namespace dunlin {
namespace {

using remote::Status;
using test::contains;
using test::Parent;
using test::Process;
using test::what_is_thrown_by;

using Map = HashMap<std::uint64_t, std::uint64_t>;

TEST(ContainerOptions, ThatDifferAreRefusedAndBothSidesAreToldWhich) {
  for (const bool channel_differs : {false, true}) {
    sim::World world(sim::profile("ib100"), 2, 1);
    std::vector<std::unique_ptr<Containers>> containers;
    std::vector<std::unique_ptr<Map>> maps;
    for (Rank rank = 0; rank < 2; ++rank) {
      ContainersOptions options;
      if (channel_differs && rank == 1) --options.channel;
      containers.push_back(std::make_unique<Containers>(world.fabric(rank), options));
      maps.push_back(std::make_unique<Map>(
          *containers[rank],
          MapOptions{.name = "map", .slots = channel_differs || rank == 0 ? 100U : 200U}));
      world.attach(rank, [one = containers[rank].get()] { return one->poll(); });
    }
    world.run_for(1'000'000);
    const std::string option = channel_differs ? "'channel' is '" : "'slots' is '";
    for (Rank by = 0; by < 2; ++by) {
      const std::string& why = containers[by]->why_refused();
      EXPECT_TRUE(contains(why, "region 'container:map' has another layout")) << why;
      EXPECT_TRUE(contains(why, option)) << why;
      std::uint32_t refused = 0;
      for (std::uint64_t key = 0; key < 20; ++key) {
        auto insert = maps[by]->insert(key, key);
        EXPECT_TRUE(world.run_until([&] { return insert.finished(); }, 1'000'000'000)) << "hangs";
        EXPECT_TRUE(insert.ok() || insert.status() == Status::refused);
        refused += insert.ok() ? 0 : 1;
      }
      EXPECT_GT(refused, 0U);
    }
    for (Rank rank = 0; rank < 2; ++rank) world.detach_all(rank);
    maps.clear();
  }
}

TEST(ContainerOptions, OfAContainerThatThisProcessHasAreRefused) {
  sim::World world(sim::profile("ib100"), 1, 1);
  Containers one(world.fabric(0));
  ContainersOptions other;
  --other.channel;
  Containers two(world.fabric(0), other);
  const MapOptions options{.name = "map", .slots = 100};
  const Map map(one, options);
  for (Containers* const at : {&one, &two}) {
    const std::string why = what_is_thrown_by([&] { const Map second(*at, options); });
    EXPECT_TRUE(contains(why, "container 'map': this process has one of this name already")) << why;
  }
}

TEST(ContainerFork, ACallOfTheChildEndsStoppedAndTheParentsElementsStay) {
  Process member([](Parent& parent) {
    const auto fabric = join({.group = test::fresh_group(), .members = 1});
    Containers containers(*fabric);
    auto map = std::make_unique<Map>(containers, MapOptions{.name = "map", .slots = 1000});
    Queue<std::uint64_t> queue(containers, {.name = "queue", .capacity = 8, .host = 0});
    if (!map->insert(1, 1).outcome().ok() || !queue.push(1).outcome().ok()) return 1;
    Process child([&](Parent&) {
      if (map->insert(2, 2).wait() != Status::stopped) return 1;
      if (map->assign(1, 2).wait() != Status::stopped) return 2;
      if (queue.pop().wait() != Status::stopped) return 3;
      map.reset();
      return 0;
    });
    if (const int code = child.exit_code(); code != 0) {
      parent.send_line("the child saw what it should not: " + std::to_string(code));
      return 1;
    }
    auto found = map->find(1), absent = map->find(2);
    auto popped = queue.pop();
    remote::wait_all({&found, &absent, &popped});
    const bool stays = found.result().found() && found.result().value() == 1 &&
                       !absent.result().found() && popped.result().found();
    parent.send_line(stays ? "all are there" : "the child has changed them");
    return 0;
  });
  EXPECT_EQ(member.receive_line(), "all are there");
  EXPECT_EQ(member.exit_code(), 0);
}

}  // namespace
}  // namespace dunlin

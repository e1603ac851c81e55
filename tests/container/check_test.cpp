#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "container/clusters.hpp"
#include "support/errors.hpp"

namespace dunlin {
namespace {

using remote::Status;
using test::contains;

struct CheckedContainers : test::OnContainers {
  using Map = HashMap<std::uint64_t, std::uint64_t>;
  using Fifo = Queue<std::uint64_t>;
  std::vector<std::unique_ptr<Map>> maps;

  void start_maps() {
    start(3);
    maps = make<Map>(MapOptions{.name = "map", .slots = 100, .checked = true});
    find_home();
    while (maps[0]->home_of(key) != home) ++key;
  }
  void find_home() {
    home = last_with_part();
    other = 3 - home;
  }
  /// All that has been said about broken promises.
  std::string sentences() {
    std::string all;
    for (Rank rank = 0; rank < cluster->size(); ++rank)
      all += (*cluster)[rank].broken_promise() + "\n";
    return all;
  }
  std::string name(Rank rank) { return (*cluster)[0].fabric().member_name(rank); }
  std::uint64_t key = 0;     // which the home holds
  Rank home = 2, other = 1;  // two members beside member 0
};

DUNLIN_RUN_ON(test::container_cases(), CheckedContainers);

/// CON-C2 ends the call that was announced later with `broken_promise`.
TEST_P(CheckedContainers, NameBothCallersOfABrokenPromise) {
  start_maps();
  // By message, or a call on shared memory would have ended when the other begins.
  auto insert = maps[0]->insert(key, 7, Promise::writes, Style::message);
  auto find = maps[other]->find(key, Promise::both, Style::message);
  const Status first = cluster->end_of(insert), second = cluster->end_of(find);
  EXPECT_TRUE(first == Status::broken_promise || second == Status::broken_promise);
  const std::string said = sentences();
  EXPECT_TRUE(contains(said, "map 'map', part of member '" + name(home) + "': ")) << said;
  EXPECT_TRUE(contains(said, "insert of member '" + name(0) + "' (promise 'writes')")) << said;
  EXPECT_TRUE(contains(said, "find of member '" + name(other) + "' (promise 'both')")) << said;
  EXPECT_TRUE(contains(said, "'writes' forbids that")) << said;
}

TEST_P(CheckedContainers, ACallThatBreaksAPromiseTouchesNothing) {
  start_maps();
  for (std::uint64_t round = 0; round < 10; ++round) {
    auto erase = maps[0]->erase(key, Promise::both, Style::message);
    auto insert = maps[other]->insert(key, round, Promise::local, Style::message);
    const Status first = cluster->end_of(erase), second = cluster->end_of(insert);
    EXPECT_TRUE(first == Status::broken_promise || second == Status::broken_promise);
    auto find = maps[home]->find(key);
    EXPECT_EQ(cluster->end_of(find), Status::ok);
    if (second == Status::broken_promise) {
      EXPECT_TRUE(!find.result().found() || find.result().value() != round);
    }
  }
}

TEST_P(CheckedContainers, AQueueNamesThemToo) {
  start(3);
  find_home();
  auto queues =
      make<Fifo>(QueueOptions{.name = "queue", .capacity = 10, .host = home, .checked = true});
  auto push = queues[0]->push(7, Promise::both, Style::message);
  auto pop = queues[other]->pop(Promise::reads, Style::message);
  const Status first = cluster->end_of(push), second = cluster->end_of(pop);
  EXPECT_TRUE(first == Status::broken_promise || second == Status::broken_promise);
  const std::string said = sentences();
  EXPECT_TRUE(contains(said, "queue 'queue', part of member '" + name(home) + "': ")) << said;
  EXPECT_TRUE(contains(said, "push of member '" + name(0) + "' (promise 'both')")) << said;
  EXPECT_TRUE(contains(said, "pop of member '" + name(other) + "' (promise 'reads')")) << said;
}

TEST_P(CheckedContainers, SayNothingOfPhasesThatKeepTheirPromises) {
  start_maps();
  const auto phase = [&](const auto& begin) {
    std::vector<Map::Operation> all;
    for (Rank by = 0; by < 3; ++by)
      for (std::uint64_t i = 0; i < 5; ++i) all.push_back(begin(*maps[by], i, by));
    for (auto& op : all) EXPECT_EQ(remote::describe(cluster->end_of(op)), "done");
  };
  for (int round = 0; round < 3; ++round) {
    phase(
        [](Map& map, std::uint64_t i, Rank by) { return map.insert(i + by, i, Promise::writes); });
    phase([](Map& map, std::uint64_t i, Rank) { return map.find(i, Promise::reads); });
    phase([](Map& map, std::uint64_t i, Rank by) {
      if (by == 0) return map.find(i, Promise::both);
      return by == 1 ? map.assign(i, 1, Promise::both) : map.erase(i, Promise::both);
    });
    EXPECT_EQ(remote::describe(cluster->end_of(maps[other]->add(key, 1, Promise::local))), "done");
  }
  EXPECT_EQ(sentences(), "\n\n\n") << "CON-C3: a call of the phase before still counts";
}

/// By CON-C1 a call that was given up leaves no announcement behind.
TEST_P(CheckedContainers, AnAbandonedCallIsRetracted) {
  start_maps();
  for (int polls = 0; polls < 12; ++polls) {
    {
      const auto given_up = maps[0]->insert(key, 1, Promise::writes, Style::message);
      cluster->pass(polls);
    }
    Map::Operation find;
    bool began = false;
    EXPECT_TRUE(cluster->until([&] {
      if (!find.finished()) return false;
      if (std::exchange(began, true) && find.ok()) return true;
      find = maps[other]->find(key, Promise::reads);
      return false;
    }));
  }
}

TEST_P(CheckedContainers, AreRefusedBesideUncheckedOnes) {
  start(2);
  home = last_with_part();
  Map checked((*cluster)[1 - home],
              {.name = "map", .slots = 9, .style = GetParam().style, .checked = true});
  const Map unchecked((*cluster)[home], {.name = "map", .slots = 9, .style = GetParam().style});
  while (checked.home_of(key) != home) ++key;
  EXPECT_EQ(remote::describe(cluster->end_of(checked.find(key))),
            remote::describe(Status::refused));
}

TEST_P(CheckedContainers, AHomeChecksWhatABufferBrings) {
  start_maps();
  Map::Operation find;
  std::array<std::uint64_t, 2> element{key, 3};
  EXPECT_TRUE(cluster->until([&] {  // as a buffer's handler does
    if (find.finished()) find = maps[other]->find(key, Promise::reads, Style::message);
    return maps[home]
               ->core()
               .apply(container::MapCall::assign, Promise::local,
                      reinterpret_cast<std::byte*>(element.data()))
               .status() == Status::broken_promise;
  }));
  const std::string& said = (*cluster)[home].broken_promise();
  EXPECT_TRUE(contains(said, "assign of member '" + name(home) + "' (promise 'local')")) << said;
  EXPECT_TRUE(contains(said, "find of member '" + name(other) + "' (promise 'reads')")) << said;
}

/// Members of a group, which goes on when one of them dies.
struct CheckedMember : test::ContainerMember {
  using ContainerMember::ContainerMember;
  HashMap<std::uint64_t, std::uint64_t> map{containers,
                                            {.name = "map", .slots = 9, .checked = true}};
};

TEST(CheckedContainersInSimulator, ForgetTheCallsOfADeadMember) {
  constexpr Rank kDead = 0, kHome = 2;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    sim::World world(test::wild_profile(), 4, seed);
    std::vector<std::unique_ptr<CheckedMember>> all;
    for (Rank rank = 0; rank < 4; ++rank) {
      all.push_back(std::make_unique<CheckedMember>(world.fabric(rank)));
      CheckedMember& member = *all.back();
      world.attach(rank, [&member] { return member.progress.poll(); });
    }
    std::uint64_t key = 0;
    while (all[0]->map.home_of(key) != kHome) ++key;
    HashMap<std::uint64_t, std::uint64_t>::Operation insert, find;
    bool met = false;
    EXPECT_TRUE(world.run_until(
        [&] {
          if (insert.finished()) insert = all[kDead]->map.insert(key, 1, Promise::writes);
          if (find.finished()) {
            met = find.status() == Status::broken_promise;
            if (!met) find = all[1]->map.find(key, Promise::both);
          }
          return met;
        },
        1'000'000'000));
    world.crash(kDead);
    bool began = false;
    EXPECT_TRUE(world.run_until(
        [&] {
          if (!find.finished()) return false;
          if (std::exchange(began, true) && find.ok()) return true;
          find = all[1]->map.find(key, Promise::both);
          return false;
        },
        1'000'000'000))
        << all[1]->containers.broken_promise();
    insert.abandon();
    world.run_for(1000);
  }
}

}  // namespace
}  // namespace dunlin

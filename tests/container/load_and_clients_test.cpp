#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/container.hpp>
#include <dunlin/fabric/sim.hpp>

#include "container/clusters.hpp"
#include "container/hub.hpp"
#include "container/load_estimate.hpp"

/// The automatic style minds how full a map is, and how many members call.
namespace dunlin {
namespace {

using container::clients_of_host;
using container::clients_of_part;
using container::LoadEstimate;

/// A table of keys by linear probing, and the searches that a call makes in it.
class ProbedTable {
 public:
  explicit ProbedTable(double load) : keys_(kSlots, 0) {
    for (std::uint32_t i = 0; i < load * kSlots; ++i) insert(random_());
  }
  /// Of a key that is there, or of one that is not.
  void search(LoadEstimate& estimate, bool is_there, std::uint32_t table = 0) {
    const std::uint64_t key = is_there ? all_[random_() % all_.size()] : random_();
    const std::uint64_t first = keys_[key % kSlots];
    estimate.note(table, first != 0 && first != key, is_there);
  }

 private:
  static constexpr std::uint32_t kSlots = 10'007;

  void insert(std::uint64_t key) {
    std::uint64_t at = key % kSlots;
    while (keys_[at] != 0) at = (at + 1) % kSlots;
    keys_[at] = key;
    all_.push_back(key);
  }

  std::mt19937_64 random_{16};
  std::vector<std::uint64_t> keys_, all_;
};

double estimated(double load, double share_there) {
  ProbedTable table(load);
  LoadEstimate estimate;
  std::mt19937_64 random(5);
  for (int i = 0; i < 4'000; ++i)
    table.search(estimate, static_cast<double>(random() % 1'000) < 1'000 * share_there);
  return estimate.load();
}

TEST(LoadEstimate, IsThatOfTheTableWhateverIsSearched) {
  for (const double load : {0.0, 0.25, 0.5, 0.75, 0.9})
    for (const double share_there : {0.0, 0.5, 1.0}) {
      if (load == 0 && share_there > 0) continue;
      EXPECT_NEAR(estimated(load, share_there), load, 0.125) << load << " " << share_there;
    }
}

TEST(LoadEstimate, AssumesHalfAndLearnsSoon) {
  LoadEstimate estimate;
  EXPECT_DOUBLE_EQ(estimate.load(), 0.5);
  for (int i = 0; i < 100; ++i) estimate.note(0, false, false);
  EXPECT_LT(estimate.load(), 0.15);
}

TEST(LoadEstimate, BeginsAnewInANewTableAndMindsTheFullOnesNoMore) {
  LoadEstimate estimate;
  for (int i = 0; i < 1'000; ++i) estimate.note(0, true, false);
  EXPECT_GT(estimate.load(), 0.9);
  ProbedTable table(0.2);
  for (int i = 0; i < 2'000; ++i) {
    table.search(estimate, false, 1);
    estimate.note(0, true, true);
  }
  EXPECT_NEAR(estimate.load(), 0.2, 0.1);
}

TEST(Clients, OfAHostAreAllOthersAndThoseOfAPartSpread) {
  EXPECT_DOUBLE_EQ(clients_of_host(1), 1);
  EXPECT_DOUBLE_EQ(clients_of_host(2), 1);
  EXPECT_DOUBLE_EQ(clients_of_host(17), 16);
  EXPECT_DOUBLE_EQ(clients_of_part(2), 1);
  EXPECT_DOUBLE_EQ(clients_of_part(4), 1.5);
  EXPECT_LT(clients_of_part(1'000), 2);
}

TEST(Clients, AreOnlyThoseThatAreMembersStill) {
  sim::World world(sim::profile("ib100"), 4, 1);
  std::vector<std::unique_ptr<test::ContainerMember>> members;
  for (Rank rank = 0; rank < 4; ++rank) {
    members.push_back(std::make_unique<test::ContainerMember>(world.fabric(rank)));
    world.attach(rank, [&member = *members[rank]] { return member.containers.poll(); });
  }
  const auto all_know = [&](std::uint32_t count) {
    return world.run_until(
        [&] {
          return members[0]->containers.hub().present == count &&
                 members[2]->containers.hub().present == count;
        },
        1'000'000'000);
  };
  EXPECT_TRUE(all_know(4));
  world.crash(3);
  EXPECT_TRUE(all_know(3));
  for (Rank rank = 0; rank < 4; ++rank) world.detach_all(rank);
  members.clear();
}

/// Members in the simulator that know these costs, and whose homes change words, too.
struct CostlyWorld {
  CostlyWorld(std::uint32_t size, double message_ns)
      : world(network(), size, 1),
        costs{.read_ns = 1'000,
              .write_ns = 1'000,
              .compare_swap_ns = 1'000,
              .fetch_add_ns = 1'000,
              .message_ns = message_ns} {
    for (Rank rank = 0; rank < size; ++rank) {
      members.push_back(
          std::make_unique<Containers>(world.fabric(rank), ContainersOptions{.costs = costs}));
      world.attach(rank, [&member = *members[rank]] { return member.poll(); });
    }
  }
  CostlyWorld(const CostlyWorld&) = delete;
  CostlyWorld& operator=(const CostlyWorld&) = delete;
  ~CostlyWorld() {
    for (Rank rank = 0; rank < members.size(); ++rank) world.detach_all(rank);
  }
  static sim::Profile network() {
    sim::Profile profile = sim::profile("ib100");
    profile.native_atomics = false;
    profile.jitter = 0;
    return profile;
  }
  template <class Kind>
  void end(Kind& call) {
    EXPECT_TRUE(world.run_until([&] { return call.finished(); }, 1'000'000'000));
  }

  sim::World world;
  ComponentCosts costs;
  std::vector<std::unique_ptr<Containers>> members;
};

/// An assign of a new value costs 3,037 ns one-sided at a load of 0.2, and 3,740 at 0.9.
TEST(AutomaticStyle, OfAMapGoesByMessageWhenTheMapIsFull) {
  CostlyWorld at(2, 3'400);
  using Map = HashMap<std::uint64_t, std::uint64_t>;
  std::vector<std::unique_ptr<Map>> maps;
  for (const auto& member : at.members)
    maps.push_back(std::make_unique<Map>(*member, MapOptions{.name = "map", .slots = 512}));
  std::vector<std::uint64_t> keys;  // of member 1's part
  std::uint64_t next = 1;
  const auto fill_to = [&](std::size_t count) {
    for (; keys.size() < count; ++next) {
      if (maps[0]->home_of(next) != 1) continue;
      keys.push_back(next);
      auto insert = maps[0]->insert(next, 0, Promise::both, Style::one_sided);
      at.end(insert);
    }
  };
  const auto assigns_by_message = [&] {
    for (int i = 0; i < 1'000; ++i) {
      auto find = maps[0]->find(keys[static_cast<std::size_t>(i) % keys.size()], Promise::both,
                                Style::one_sided);
      at.end(find);
    }
    auto assign = maps[0]->assign(keys.front(), 1);
    at.end(assign);
    return assign.result().round_trips() == 1;
  };
  fill_to(100);
  EXPECT_FALSE(assigns_by_message());
  fill_to(470);
  EXPECT_TRUE(assigns_by_message());
  maps.clear();
}

/// The same for what a member sees in its own part: requests of others, and own calls.
TEST(AutomaticStyle, OfAMapLearnsFromRequestsToo) {
  CostlyWorld at(2, 3'400);
  using Map = HashMap<std::uint64_t, std::uint64_t>;
  std::vector<std::unique_ptr<Map>> maps;
  for (const auto& member : at.members)
    maps.push_back(std::make_unique<Map>(*member, MapOptions{.name = "map", .slots = 512}));
  for (std::uint64_t key = 1; key <= 900; ++key) {
    auto insert = maps[0]->insert(key, 0, Promise::both, Style::message);
    at.end(insert);
  }
  for (std::uint64_t i = 0; i < 2'000; ++i) {
    auto find = maps[0]->find(1 + i % 900, Promise::both, Style::message);
    at.end(find);
  }
  std::uint64_t key = 1;
  while (maps[1]->home_of(key) != 0) ++key;
  auto assign = maps[1]->assign(key, 1);  // member 1 has made no call before
  at.end(assign);
  EXPECT_EQ(assign.result().round_trips(), 1U);
  maps.clear();
}

/// How long a push of member 1 to the queue of member 0 takes, in that style.
std::uint64_t push_ns(CostlyWorld& at, Queue<std::uint64_t>& queue, Style style) {
  const std::uint64_t begin_ns = at.world.now_ns();
  auto push = queue.push(7, Promise::both, style);
  at.end(push);
  EXPECT_TRUE(push.ok());
  return at.world.now_ns() - begin_ns;
}

/// A push costs 2,000 ns one-sided, and by message 1,500 and half as much for each other client.
TEST(AutomaticStyle, OfAQueueGoesOneSidedWhenManyMembersCall) {
  for (const std::uint32_t size : {2U, 3U, 4U, 8U}) {
    CostlyWorld at(size, 1'500);
    std::vector<std::unique_ptr<Queue<std::uint64_t>>> queues;
    for (const auto& member : at.members)
      queues.push_back(std::make_unique<Queue<std::uint64_t>>(
          *member, QueueOptions{.name = "queue", .capacity = 100, .host = 0}));
    push_ns(at, *queues[1], Style::automatic);  // after this, all are connected
    const std::uint64_t one_sided_ns = push_ns(at, *queues[1], Style::one_sided);
    const std::uint64_t message_ns = push_ns(at, *queues[1], Style::message);
    ASSERT_GT(one_sided_ns, message_ns + 2'000);
    // The automatic one may also read the target's wait, which takes its post a moment longer.
    const std::uint64_t automatic_ns = push_ns(at, *queues[1], Style::automatic);
    EXPECT_EQ(2 * automatic_ns < one_sided_ns + message_ns, size < 4) << size;
    queues.clear();
  }
}

}  // namespace
}  // namespace dunlin

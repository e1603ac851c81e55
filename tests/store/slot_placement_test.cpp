#include "store/slot_placement.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/remote.hpp>

#include "support/rounds.hpp"
#include "support/seeds.hpp"

/// Members in the simulator that agree on a slot map while they come, drain, pause and die.
namespace dunlin::store {
namespace {

constexpr std::uint32_t kMostPlaced = 12;

/// A member that copies and opens slots in no time, or some time later.
class Placed {
 public:
  Placed(std::unique_ptr<Group> its_group, const PlacementOptions& options, std::uint64_t seed)
      : group(std::move(its_group)),
        members(std::make_unique<GroupMembers>(*group, kMostPlaced)),
        progress(group->fabric(), *members),
        placement(progress, options),
        random_(seed) {}
  explicit Placed(Fabric& fabric, const PlacementOptions& options)
      : progress(fabric), placement(progress, options), random_(fabric.rank()) {}

  std::size_t poll() {
    std::size_t done = progress.poll() + placement.poll();
    const std::uint64_t now_ns = progress.fabric().now_ns();
    for (const std::uint32_t slot : placement.take_changed()) look_at(slot, now_ns);
    while (!due_.empty() && due_.begin()->first <= now_ns) {
      act(due_.begin()->second);
      due_.erase(due_.begin());
      ++done;
    }
    if (!due_.empty()) progress.fabric().wake_at(due_.begin()->first);
    return done;
  }
  [[nodiscard]] const SlotMap& map() const { return placement.map(); }
  [[nodiscard]] bool stopped() const { return progress.stopped(); }

  std::unique_ptr<Group> group;
  std::unique_ptr<GroupMembers> members;
  remote::Progress progress;
  SlotPlacement placement;
  std::uint32_t most_delay_ns = 0;

 private:
  [[nodiscard]] std::optional<Decision> duty(std::uint32_t slot) const {
    return duty_of(slot, map().slot(slot), progress.fabric().rank());
  }
  void look_at(std::uint32_t slot, std::uint64_t now_ns) {
    if (!duty(slot)) return;
    due_.emplace(now_ns + (most_delay_ns == 0 ? 0 : random_() % most_delay_ns), slot);
  }
  void act(std::uint32_t slot) {
    if (const auto decision = duty(slot)) placement.say(*decision);
  }

  std::multimap<std::uint64_t, std::uint32_t> due_;  // by time
  std::mt19937_64 random_;
};

/// A group in the simulator, whose founders all hold keys.
class PlacedGroup {
 public:
  explicit PlacedGroup(std::uint32_t founders, std::uint32_t later = 0, std::uint64_t seed = 1,
                       std::uint32_t copies = 2, std::uint32_t slots = 64)
      : world(sim::profile("ib100"), founders, seed),
        nodes(founders + later),
        entries_(founders + later),
        options_{.name = "map",
                 .slots = slots,
                 .copies = copies,
                 .first_holders = founders,
                 .weight = 10,
                 .limits = {2, 2}} {
    for (std::uint32_t i = 0; i < later; ++i) world.add_node();
    for (Rank node = 0; node < nodes.size(); ++node) {
      if (node < founders)
        settle(node, std::make_unique<Group>(world.fabric(node), group_options(node)));
      world.attach(node, [this, node] { return poll(node); });
    }
  }
  ~PlacedGroup() {
    for (Rank node = 0; node < nodes.size(); ++node) world.detach_all(node);
    nodes.clear();
  }
  void come(Rank node) {
    world.on(node, [this, node] {
      entries_[node] =
          std::make_unique<GroupEntry>("late" + std::to_string(node), group_options(node), 60'000);
    });
  }
  [[nodiscard]] bool is_in(Rank node) const { return nodes[node] && !nodes[node]->stopped(); }
  /// Whether these members have one map, of which nothing is left to do.
  [[nodiscard]] bool rests(const std::vector<Rank>& some) const {
    for (const Rank node : some) {
      if (!is_in(node) || !nodes[node]->placement.ready()) return false;
      const SlotMap& map = nodes[node]->map();
      if (!map.created() || map.version() != nodes[some.front()]->map().version()) return false;
      const MapSummary sum = summarize(map);
      if (sum.moving + sum.opening + sum.emptying > 0 || !plan(map, options_.limits).empty())
        return false;
      const Holder* const mine = map.member(nodes[node]->progress.fabric().rank());
      if (mine == nullptr) return false;
    }
    return true;
  }
  void expect_rest(const std::vector<Rank>& some, const std::string& why = "STO-P6") {
    const bool has_come =
        world.run_until([&] { return rests(some); }, std::uint64_t{20'000'000'000});
    ASSERT_TRUE(has_come) << why << ": does not come to rest" << describe(some);
    for (const Rank node : some)
      ASSERT_EQ(nodes[node]->map().save(), nodes[some.front()]->map().save()) << "STO-P1";
  }
  [[nodiscard]] std::string describe(const std::vector<Rank>& some) const {
    std::string text;
    for (const Rank node : some) {
      const SlotMap& map = nodes[node]->map();
      const MapSummary sum = summarize(map);
      text += "\nnode " + std::to_string(node) + ": version " + std::to_string(map.version()) +
              ", " + std::to_string(sum.slots) + " slots, " + std::to_string(sum.moving) +
              " moving, " + std::to_string(sum.opening) + " opening, " +
              std::to_string(plan(map, options_.limits).size()) + " planned; members";
      for (const Holder& one : map.members())
        text += " " + std::to_string(one.rank) + ":" + std::to_string(one.weight) +
                (one.takes ? "" : "!");
    }
    return text;
  }
  [[nodiscard]] std::uint32_t held(Rank node, Rank by) const {
    std::uint32_t count = 0;
    const SlotMap& map = nodes[by]->map();
    for (std::uint32_t slot = 0; slot < map.slots(); ++slot)
      count += map.slot(slot).has_full_copy(nodes[node]->progress.fabric().rank()) ? 1 : 0;
    return count;
  }

  sim::World world;
  std::vector<std::unique_ptr<Placed>> nodes;

 private:
  GroupOptions group_options(Rank node) { return {.rendezvous = world.rendezvous(node, "sim")}; }
  void settle(Rank node, std::unique_ptr<Group> group) {
    nodes[node] = std::make_unique<Placed>(std::move(group), options_, node);
  }
  std::size_t poll(Rank node) {
    if (nodes[node]) return nodes[node]->poll();
    if (!entries_[node]) return 0;
    std::unique_ptr<Group> group = entries_[node]->poll();
    if (!group) return 0;
    entries_[node].reset();
    settle(node, std::move(group));
    return 1;
  }

  std::vector<std::unique_ptr<GroupEntry>> entries_;
  PlacementOptions options_;
};

TEST(SlotPlacement, AJoinerTakesItsShareByItself) {
  PlacedGroup group(3, 1);
  group.expect_rest({0, 1, 2});
  EXPECT_NEAR(group.held(0, 0), 64 * 2 / 3.0, 1);
  group.come(3);
  ASSERT_TRUE(group.world.run_until([&] { return group.is_in(3); }, 1'000'000'000));
  EXPECT_TRUE(group.world.run_until([&] { return group.held(3, 0) == 32; }, 1'000'000'000))
      << "STO-P6";
  group.expect_rest({0, 1, 2, 3});
}

TEST(SlotPlacement, HealsAfterTheDeathOfThePlanner) {
  PlacedGroup group(4);
  group.expect_rest({0, 1, 2, 3});
  group.world.crash(0);
  ASSERT_TRUE(group.world.run_until([&] { return group.nodes[1]->map().members().size() == 3; },
                                    1'000'000'000));
  group.expect_rest({1, 2, 3});
  EXPECT_EQ(summarize(group.nodes[1]->map()).lacking, 0U) << "STO-P6";
  EXPECT_EQ(summarize(group.nodes[1]->map()).lost, 0U) << "STO-P4";
}

TEST(SlotPlacement, ADrainedMemberHoldsNothingAndComesBack) {
  PlacedGroup group(4);
  group.expect_rest({0, 1, 2, 3});
  group.world.on(2, [&] { group.nodes[2]->placement.set_weight(0); });
  ASSERT_TRUE(group.world.run_until([&] { return group.held(2, 0) == 0; }, 1'000'000'000))
      << "STO-P6";
  group.expect_rest({0, 1, 2, 3});
  EXPECT_EQ(summarize(group.nodes[0]->map()).lacking, 0U) << "STO-P4";
  group.world.on(2, [&] { group.nodes[2]->placement.set_weight(10); });
  ASSERT_TRUE(group.world.run_until([&] { return group.held(2, 0) == 32; }, 1'000'000'000))
      << "STO-P6";
}

TEST(SlotPlacement, SaysNothingMoreWhenThereIsNothingToDo) {
  PlacedGroup group(3);
  group.expect_rest({0, 1, 2});
  group.world.run_for(1'000'000);
  const std::uint64_t version = group.nodes[0]->map().version();
  group.world.run_for(100'000'000);
  EXPECT_EQ(group.nodes[0]->map().version(), version) << "STO-P12";
  EXPECT_LT(version, 40U) << "STO-P12: four members made one map";
}

TEST(SlotPlacement, WorksOnAFixedListOfMembers) {
  sim::World world(sim::profile("ib100"), 3, 1);
  std::vector<std::unique_ptr<Placed>> nodes;
  for (Rank rank = 0; rank < 3; ++rank) {
    nodes.push_back(std::make_unique<Placed>(
        world.fabric(rank),
        PlacementOptions{.name = "map", .slots = 64, .first_holders = 3, .weight = rank + 1}));
    world.attach(rank, [&nodes, rank] { return nodes[rank]->poll(); });
  }
  ASSERT_TRUE(world.run_until(
      [&] {
        return std::ranges::all_of(nodes, [&](const auto& node) {
          return node->map().created() && node->map().version() == nodes[0]->map().version();
        });
      },
      1'000'000'000));
  for (const auto& node : nodes) EXPECT_EQ(node->map().save(), nodes[0]->map().save()) << "STO-P1";
  for (Rank rank = 0; rank < 3; ++rank) world.detach_all(rank);
  nodes.clear();
}

/// A life of a group from a seed.
class PlacementSeed {
 public:
  explicit PlacementSeed(std::uint64_t seed)
      : random_(seed),
        founders_(2 + below(4)),
        later_(below(3)),
        group_(founders_, later_, seed, 1 + below(3), 32),
        gone_(founders_ + later_) {}

  void run() {
    for (Rank node = founders_; node < founders_ + later_; ++node) waiting_.push_back(node);
    for (std::uint32_t steps = 5 + below(30); steps > 0; --steps) {
      group_.world.run_for(1 + below(below(3) == 0 ? 500'000 : 20'000));
      step(below(founders_ + later_));
    }
    for (Rank node = 0; node < group_.nodes.size(); ++node) group_.world.slow(node, 1);
    group_.world.run_for(50'000'000);
    std::vector<Rank> here;
    for (Rank node = 0; node < group_.nodes.size(); ++node)
      if (!gone_[node] && group_.is_in(node)) here.push_back(node);
    for (const Rank node : here) {
      Placed* const one = group_.nodes[node].get();
      group_.world.on(node, [one] { one->placement.set_weight(10); });
    }
    group_.world.run_for(1'000'000);
    if (!here.empty()) group_.expect_rest(here);
  }

 private:
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  void step(Rank node) {
    const std::uint32_t what = below(10), number = below(4'000'000);
    if (what == 0 && !waiting_.empty()) {
      group_.come(waiting_.back());
      waiting_.pop_back();
      return;
    }
    if (!group_.is_in(node) || gone_[node]) return;
    Placed* const one = group_.nodes[node].get();
    switch (what) {
      case 1:
        if (std::ranges::count(gone_, true) > 1) return;
        gone_[node] = true;
        return group_.world.crash(node);
      case 2:
        return group_.world.pause(node, number / 10);
      case 3:
        return group_.world.slow(node, 1 + number % 10);
      case 4:
        return group_.world.on(node, [one, number] { one->placement.set_weight(number % 3 * 10); });
      case 5:
        return group_.world.on(node, [one, number] {
          const std::uint32_t slot = number % std::max(one->map().slots(), 1U);
          if (!one->map().created() || one->map().slot(slot).incoming == kNobody) return;
          one->placement.say({.kind = Decision::Kind::stop,
                              .flag = 1,
                              .slot = static_cast<std::uint16_t>(slot),
                              .epoch = one->map().slot(slot).epoch});
        });
      case 6:
        one->most_delay_ns = number / 10;
        return;
      default:
        return;
    }
  }

  std::mt19937_64 random_;
  std::uint32_t founders_;
  std::uint32_t later_;
  PlacedGroup group_;
  std::vector<bool> gone_;
  std::vector<Rank> waiting_;
};

TEST(SlotPlacementInSimulator, ComesToRestWithOneMap) {
  test::for_each_seed(test::Seeds(test::rounds(400)),
                      [](std::uint64_t seed) { PlacementSeed(seed).run(); });
}

}  // namespace
}  // namespace dunlin::store

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/error.hpp>
#include <dunlin/fabric/sim.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/remote.hpp>

#include "support/agreed_history.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

/// The order that the views of a group give to `remote`, amid crashes, cuts, leaves and joins.
namespace dunlin {
namespace {

using test::AgreedHistory;

constexpr std::uint32_t kMostOrdered = 12;

struct OrderedMember {
  explicit OrderedMember(std::unique_ptr<Group> its_group)
      : group(std::move(its_group)), members(*group, kMostOrdered) {}
  ~OrderedMember() { order.reset(); }
  void open() { order = progress.open_order({.name = "map"}, history); }
  std::size_t poll() {
    const std::size_t done = progress.poll();
    return done + (order ? order->poll() : 0);
  }

  std::unique_ptr<Group> group;
  GroupMembers members;
  remote::Progress progress{group->fabric(), members};
  AgreedHistory history;
  std::unique_ptr<remote::AgreedOrder> order;
};

/// Members of a group in the simulator, of which founders open the order at once.
class OrderedGroup {
 public:
  explicit OrderedGroup(std::uint32_t founders, std::uint32_t later = 0, std::uint64_t seed = 1)
      : world(sim::profile("ib100"), founders, seed), nodes(founders + later) {
    for (std::uint32_t i = 0; i < later; ++i) world.add_node();
    for (Rank node = 0; node < nodes.size(); ++node) {
      if (node < founders) settle(node, std::make_unique<Group>(world.fabric(node), options(node)));
      world.attach(node, [this, node] { return poll(node); });
    }
  }
  ~OrderedGroup() {
    for (Rank node = 0; node < nodes.size(); ++node) world.detach_all(node);
    nodes.clear();
  }
  void come(Rank node) {
    world.on(node, [this, node] {
      nodes[node].entry =
          std::make_unique<GroupEntry>("late" + std::to_string(node), options(node), 60'000);
    });
  }
  void propose(Rank node, std::uint32_t many = 1) {
    world.on(node, [this, node, many] {
      if (!is_in(node)) return;
      for (std::uint32_t i = 0; i < many; ++i)
        if (test::propose(*nodes[node].member->order, {node, nodes[node].taken}))
          ++nodes[node].taken;
    });
  }
  [[nodiscard]] bool is_in(Rank node) const {
    const Node& one = nodes[node];
    return one.member && one.member->group->why_ended().empty() && one.member->order;
  }
  [[nodiscard]] bool is_ready(Rank node) const {
    return is_in(node) && nodes[node].member->order->ready();
  }
  /// What the order has said, without what it said of members.
  [[nodiscard]] std::vector<std::string> proposals(Rank node) const {
    std::vector<std::string> lines = history(node);
    std::erase_if(lines, [](const std::string& line) { return line.starts_with("members"); });
    return lines;
  }
  [[nodiscard]] std::vector<std::string> history(Rank node) const {
    return nodes[node].member ? nodes[node].member->history.lines : std::vector<std::string>();
  }
  bool until(const std::function<bool()>& condition) {
    return world.run_until(condition, 1'000'000'000);
  }
  void until_all_ready(std::uint32_t many) {
    ASSERT_TRUE(until([&] {
      for (Rank node = 0; node < many; ++node)
        if (!is_ready(node) || nodes[node].member->history.members.size() != many) return false;
      return true;
    }));
  }

  struct Node {
    std::unique_ptr<GroupEntry> entry;
    std::unique_ptr<OrderedMember> member;
    std::uint32_t taken = 0;
  };
  sim::World world;
  std::vector<Node> nodes;

 private:
  GroupOptions options(Rank node) { return {.rendezvous = world.rendezvous(node, "sim")}; }
  void settle(Rank node, std::unique_ptr<Group> group) {
    nodes[node].member = std::make_unique<OrderedMember>(std::move(group));
    nodes[node].member->open();
  }
  std::size_t poll(Rank node) {
    Node& one = nodes[node];
    if (one.member) return one.member->poll();
    if (!one.entry) return 0;
    std::unique_ptr<Group> group = one.entry->poll();
    if (!group) return 0;
    one.entry.reset();
    settle(node, std::move(group));
    return 1;
  }
};

bool is_beginning_of(const std::vector<std::string>& some, const std::vector<std::string>& more) {
  return some.size() <= more.size() && std::equal(some.begin(), some.end(), more.begin());
}

TEST(GroupOrder, GivesAJoinerTheStateAndThenTheRest) {
  OrderedGroup group(2, 1);
  group.until_all_ready(2);
  group.propose(0, 5);
  group.propose(1, 5);
  ASSERT_TRUE(group.until([&] { return group.proposals(0).size() == 10; }));
  group.come(2);
  ASSERT_TRUE(group.until([&] { return group.is_ready(2); }));
  EXPECT_TRUE(group.nodes[2].member->history.loaded) << "REM-22";
  EXPECT_EQ(group.proposals(2).size(), 10) << "REM-22";
  group.propose(2, 3);
  ASSERT_TRUE(group.until([&] {
    return group.proposals(0).size() == 13 && group.proposals(1).size() == 13 &&
           group.proposals(2).size() == 13;
  }));
  EXPECT_EQ(group.history(2), group.history(0)) << "REM-19";
  EXPECT_EQ(group.history(1), group.history(0)) << "REM-19";
  EXPECT_EQ(group.nodes[0].member->history.members.size(), 3);
}

TEST(GroupOrder, TellsOfADeathBetweenTheSameTwoProposals) {
  OrderedGroup group(4);
  group.until_all_ready(4);
  for (int round = 0; round < 20; ++round) {
    for (Rank node = 0; node < 4; ++node) group.propose(node, 2);
    group.world.run_for(3'000);
    if (round == 7) group.world.crash(3);
  }
  group.world.run_for(50'000'000);
  for (Rank node = 0; node < 3; ++node) {
    EXPECT_EQ(group.history(node), group.history(0)) << "REM-19";
    EXPECT_EQ(group.nodes[node].member->history.members, (std::vector<Rank>{0, 1, 2}));
  }
  EXPECT_TRUE(is_beginning_of(group.history(3), group.history(0))) << "REM-20";
}

/// REM-20: whatever a member has handled before it died, the others handle; and if they handle what
/// it has proposed, then all of them do.
TEST(GroupOrder, LosesNothingThatAProposerHasHandledWheneverItDies) {
  std::set<std::size_t> outcomes;
  for (std::uint64_t ns = 0; ns < 12'000; ns += 200) {
    SCOPED_TRACE(ns);
    OrderedGroup group(3);
    group.until_all_ready(3);
    const auto proposer = static_cast<Rank>(ns / 200 % 3);
    group.propose(proposer, 2);
    group.world.run_for(ns);
    group.world.crash(proposer);
    const Rank one = (proposer + 1) % 3, other = (proposer + 2) % 3;
    ASSERT_TRUE(group.until([&] {
      return group.nodes[one].member->history.members.size() == 2 &&
             group.nodes[other].member->history.members.size() == 2;
    }));
    ASSERT_EQ(group.history(one), group.history(other)) << "REM-19";
    ASSERT_TRUE(is_beginning_of(group.history(proposer), group.history(one))) << "REM-20";
    outcomes.insert(group.proposals(one).size());
  }
  EXPECT_TRUE(outcomes.contains(0) && outcomes.contains(2)) << "deaths came before and after it";
}

TEST(GroupOrder, AMinorityDecidesNothing) {
  OrderedGroup group(5);
  group.until_all_ready(5);
  for (const Rank few : {0U, 1U})
    for (const Rank many : {2U, 3U, 4U}) {
      group.world.cut(few, many);
      group.world.cut(many, few);
    }
  for (int round = 0; round < 200; ++round) {
    group.propose(0);
    group.propose(3);
    group.world.run_for(50'000);
  }
  group.world.run_for(50'000'000);
  EXPECT_FALSE(group.is_in(0));
  EXPECT_FALSE(group.is_in(1));
  EXPECT_EQ(group.proposals(0), std::vector<std::string>()) << "REM-20";
  EXPECT_EQ(group.proposals(1), std::vector<std::string>()) << "REM-20";
  EXPECT_EQ(group.proposals(2).size(), group.nodes[3].taken) << "REM-21";
  EXPECT_EQ(group.history(3), group.history(2)) << "REM-19";
  EXPECT_EQ(group.history(4), group.history(2)) << "REM-19";
}

TEST(GroupOrder, RefusesANameInUseAndAProposalThatIsTooLong) {
  OrderedGroup group(1);
  group.until_all_ready(1);
  OrderedMember& member = *group.nodes[0].member;
  AgreedHistory other;
  EXPECT_THROW(static_cast<void>(member.progress.open_order({.name = "map"}, other)), Error);
  EXPECT_THROW(static_cast<void>(member.progress.open_order({.name = "a b"}, other)), Error);
  EXPECT_THROW(
      static_cast<void>(member.order->propose(std::vector<std::byte>(kMaxProposalBytes + 1))),
      Error);
}

/// Draws a life of a group from a seed.
class OrderSeed {
 public:
  explicit OrderSeed(std::uint64_t seed)
      : random_(seed),
        founders_(1 + below(5)),
        later_(below(2) == 0 ? below(4) : 0),
        group_(founders_, later_, seed),
        gone_(founders_ + later_) {}

  void run() {
    for (Rank node = founders_; node < founders_ + later_; ++node) waiting_.push_back(node);
    for (std::uint32_t steps = 10 + below(60); steps > 0; --steps) {
      group_.world.run_for(1 + below(below(3) == 0 ? 300'000 : 10'000));
      const Rank node = below(founders_ + later_);
      if (below(8) == 0)
        trouble(node);
      else
        group_.propose(node, 1 + below(20));
    }
    for (Rank node = 0; node < group_.nodes.size(); ++node) {
      group_.world.slow(node, 1);
      for (Rank other = 0; other < group_.nodes.size(); ++other)
        if (node != other) group_.world.heal(node, other);
    }
    group_.world.run_for(100'000'000);
    check();
  }

 private:
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

  void trouble(Rank node) {
    const Rank other = below(founders_ + later_);
    switch (below(6)) {
      case 0:
        gone_[node] = true;
        return group_.world.crash(node);
      case 1:
        return group_.world.pause(node, below(3'000'000));
      case 2:
        if (node != other) group_.world.cut(node, other);
        return;
      case 3:
        if (gone_[node] || !group_.is_in(node)) return;
        gone_[node] = true;
        return group_.world.on(node, [this, node] { group_.nodes[node].member->group->leave(); });
      case 4:
        return group_.world.slow(node, 2 + below(20));
      default:
        if (waiting_.empty()) return;
        group_.come(waiting_.back());
        waiting_.pop_back();
    }
  }

  /// Members that are there have one history. What any other one has handled is its beginning, if
  /// one is left that has not begun anew.
  void check() {
    std::vector<Rank> here;
    for (Rank node = 0; node < group_.nodes.size(); ++node)
      if (!gone_[node] && group_.is_in(node)) here.push_back(node);
    if (here.empty()) return;
    const std::vector<std::string> all = group_.history(here.front());
    for (const Rank node : here) {
      ASSERT_TRUE(group_.is_ready(node)) << "node " << node;
      ASSERT_EQ(group_.nodes[node].member->order->why_stopped(), "");
      ASSERT_EQ(group_.history(node), all) << "REM-19: nodes " << here.front() << " and " << node;
      ASSERT_EQ(group_.nodes[node].member->history.members.size(), here.size());
      check_own(node, all);
    }
    for (Rank node = 0; node < founders_; ++node) {
      const std::vector<std::string> lines = group_.history(node);
      if (lines.empty() || all.empty() || lines.front() != all.front()) continue;
      ASSERT_TRUE(is_beginning_of(lines, all)) << "REM-20: node " << node;
    }
  }
  /// REM-21: each of its proposals once, in turn.
  void check_own(Rank node, const std::vector<std::string>& all) {
    std::uint32_t next = 0;
    const std::string begin = std::to_string(node) + ": ";
    for (const std::string& line : all) {
      if (!line.starts_with(begin)) continue;
      ASSERT_EQ(line, begin + std::to_string(next++)) << "REM-19, REM-21";
    }
    ASSERT_EQ(next, group_.nodes[node].taken) << "REM-21: node " << node;
  }

  std::mt19937_64 random_;
  std::uint32_t founders_;
  std::uint32_t later_;
  OrderedGroup group_;
  std::vector<bool> gone_;
  std::vector<Rank> waiting_;
};

TEST(GroupOrderInSimulator, IsOneForAllThatAreLeft) {
  test::for_each_seed(test::Seeds(test::rounds(800)),
                      [](std::uint64_t seed) { OrderSeed(seed).run(); });
}

}  // namespace
}  // namespace dunlin

#include <numeric>

#include "group/cluster_fixture.hpp"
#include "support/rounds.hpp"

/// Groups whose sets of members have several words, in the simulator.
namespace dunlin {
namespace {

using test::ClusterNode;

constexpr std::uint32_t kFounders = test::kSanitized ? 70 : 200;

/// Founders, of which the first, the last and node 66 send, and one node that joins later and
/// sends.
class WideGroupInSimulator : public testing::Test {
 protected:
  WideGroupInSimulator() {
    world.add_node();
    for (Rank node = 0; node <= kFounders; ++node) {
      nodes.push_back(
          std::make_unique<ClusterNode>(world, node, MulticastOptions{.ring_bytes = 1024}));
      nodes.back()->senders = {"node0", "node66", name_of(kFounders - 1), name_of(kFounders)};
      if (node < kFounders) nodes.back()->found();
    }
  }

  static std::string name_of(Rank node) { return "node" + std::to_string(node); }
  /// A failure gives many members work at once, so they are silent for longer than few would be.
  static sim::Profile network() {
    sim::Profile profile = sim::profile("ib100");
    profile.heartbeat_interval_ns = 1'000'000;
    profile.silence_timeout_ns = 20'000'000;
    return profile;
  }

  /// Looks now and then, as a look at all takes longer than an event.
  bool until_view_of(const std::vector<Rank>& ranks, std::size_t messages) {
    for (int looks = 0; looks < 2'000; ++looks) {
      world.run_for(50'000);
      if (is_view_of(ranks, messages)) return true;
    }
    return false;
  }
  [[nodiscard]] bool is_view_of(const std::vector<Rank>& ranks, std::size_t messages) const {
    std::vector<std::string> names;
    names.reserve(ranks.size());
    for (const Rank rank : ranks) names.push_back(name_of(rank));
    return std::ranges::all_of(ranks, [&](Rank rank) {
      const ClusterNode& node = *nodes[rank];
      return !node.views.empty() && node.views.back().members == names &&
             node.history.size() == messages && node.history == nodes[ranks.front()]->history;
    });
  }

  sim::World world{network(), kFounders, 1};
  std::vector<std::unique_ptr<ClusterNode>> nodes;
};

TEST_F(WideGroupInSimulator, FormsLosesMembersAtOnceAndTakesAJoiner) {
  std::vector<Rank> members(kFounders);
  std::iota(members.begin(), members.end(), 0);
  for (const Rank sender : {0U, 66U, kFounders - 1}) nodes[sender]->send(1);
  ASSERT_TRUE(until_view_of(members, 3));

  for (const Rank dead : {0U, 1U, 63U, 64U, kFounders - 2}) {  // the next leader, too
    world.crash(dead);
    std::erase(members, dead);
  }
  ASSERT_TRUE(until_view_of(members, 3));
  for (const Rank rank : members) ASSERT_EQ(nodes[rank]->views.size(), 2U) << rank;

  nodes[kFounders]->come();
  members.push_back(kFounders);
  for (const Rank sender : {kFounders - 1, kFounders}) nodes[sender]->send(1);
  ASSERT_TRUE(until_view_of(members, 5)) << nodes[kFounders]->error;
  EXPECT_EQ(nodes[kFounders]->loads, 1U);
  EXPECT_FALSE(nodes[kFounders]->sent_without_state);
}

}  // namespace
}  // namespace dunlin

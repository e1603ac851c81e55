#include <random>

#include "group/cluster_fixture.hpp"
#include "support/seeds.hpp"

/// Groups that members join, leave and lose, in ways drawn from a seed: whoever is left at the end
/// is in one view, and has the same history.
namespace dunlin {
namespace {

using test::ClusterFixture;
using test::ClusterNode;

constexpr std::uint64_t kSeeds = 300;

class JoiningSeed {
 public:
  explicit JoiningSeed(std::uint64_t seed)
      : random_(seed),
        founders_(1 + below(4)),
        nodes_(founders_ + 1 + below(4)),
        cluster_(founders_, nodes_ - founders_, seed,
                 {.mode = below(4) == 0 ? multicast::Mode::unordered : multicast::Mode::ordered,
                  .ring_bytes = std::size_t{1024} << below(4)}),
        gone_(nodes_) {
    if (below(3) == 0)
      for (const auto& cluster_node : cluster_.cluster_nodes) cluster_node->by_next();
  }

  void run() {
    for (Rank node = founders_; node < nodes_; ++node) waiting_.push_back(node);
    for (std::uint32_t steps = 3 + below(10); steps > 0; --steps) {
      cluster_.world.run_for(1 + below(300'000));
      trouble();
    }
    mend();
    cluster_.world.run_for(60'000'000);
    check();
  }

 private:
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

  void trouble() {
    const Rank one = below(nodes_);
    const Rank other = below(nodes_);
    switch (below(10)) {
      case 0:
        gone_[one] = true;
        return cluster_.world.crash(one);
      case 1:
        return cluster_.world.pause(one, below(3'000'000));
      case 2:
        if (one != other) cluster_.world.cut(one, other);
        return;
      case 3:
        if (cluster_[one].group && !gone_[one]) {
          gone_[one] = true;
          cluster_.world.on(one, [this, one] { cluster_[one].group->leave(); });
        }
        return;
      case 4:
        return cluster_.world.slow(one, 2 + below(20));
      case 5:
      case 6:
        return cluster_[one].send(below(60));
      default:
        if (waiting_.empty()) return;
        cluster_[waiting_.back()].come();
        waiting_.pop_back();
    }
  }

  void mend() {
    for (Rank one = 0; one < nodes_; ++one) {
      cluster_.world.slow(one, 1);
      for (Rank other = 0; other < nodes_; ++other)
        if (one != other) cluster_.world.heal(one, other);
    }
  }

  [[nodiscard]] bool is_in(Rank node) {
    return !gone_[node] && cluster_[node].group && cluster_[node].group->why_ended().empty();
  }

  void check() {
    const ClusterNode* first = nullptr;
    for (Rank node = 0; node < nodes_; ++node) {
      if (cluster_[node].group) {
        EXPECT_EQ(cluster_[node].group->why_ended().find("this member has not"), std::string::npos)
            << cluster_.text();
      }
      if (!is_in(node)) continue;
      const ClusterNode& cluster_node = cluster_[node];
      ASSERT_FALSE(cluster_node.views.empty()) << cluster_node.name() << "\n" << cluster_.text();
      EXPECT_TRUE(cluster_node.idle()) << cluster_node.name() << "\n" << cluster_.text();
      if (first == nullptr) first = &cluster_node;
      ASSERT_EQ(cluster_node.views.back().members, first->views.back().members) << cluster_.text();
      ASSERT_EQ(what_counts(cluster_node), what_counts(*first)) << cluster_.text();
      for (const std::string& member : cluster_node.views.back().members)
        ASSERT_TRUE(is_in(node_of(member))) << member << " is gone\n" << cluster_.text();
    }
    if (first == nullptr) return;
    for (Rank node = founders_; node < nodes_; ++node)
      ASSERT_TRUE(gone_[node] || !cluster_[node].entry) << "still knocking\n" << cluster_.text();
  }
  /// Unordered, of those who are gone some may have more than others.
  [[nodiscard]] std::vector<std::string> what_counts(const ClusterNode& cluster_node) {
    std::vector<std::string> history = cluster_node.history;
    if (!unordered()) return history;
    std::erase_if(history, [&](const std::string& text) { return !is_in(node_of(text)); });
    std::ranges::sort(history);
    return history;
  }
  [[nodiscard]] static Rank node_of(const std::string& name) {
    return static_cast<Rank>(std::stoul(name.substr(4)));
  }
  [[nodiscard]] bool unordered() const {
    return cluster_.options.mode == multicast::Mode::unordered;
  }

  std::mt19937_64 random_;
  std::uint32_t founders_;
  std::uint32_t nodes_;
  ClusterFixture cluster_;
  std::vector<bool> gone_;
  std::vector<Rank> waiting_;
};

TEST(JoiningFromSeeds, LeavesAllInOneViewWithOneHistory) {
  test::for_each_seed(test::Seeds(kSeeds), [](std::uint64_t seed) { JoiningSeed(seed).run(); });
}

}  // namespace
}  // namespace dunlin

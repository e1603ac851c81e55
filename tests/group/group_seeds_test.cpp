#include <map>
#include <random>

#include "group/sim_groups.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

namespace dunlin {
namespace {

using test::GroupNode;
using test::SimGroups;

const std::uint64_t kSeeds = test::rounds(1'000);

/// Groups to which everything happens that a seed can think of. What is checked: members install
/// the same views, each has itself in them, numbers go up by one, and trims are the same; and when
/// nothing new happens any more, everybody is in the last view, or knows that it is not.
class Troubled {
 public:
  explicit Troubled(std::uint64_t seed)
      : random_(seed),
        members_(2 + below(6)),
        groups_(members_, seed, {.subgroups = {{.name = "all"}}}),
        gone_(members_) {
    for (Rank rank = 0; rank < members_; ++rank) groups_[rank].participant.per_view = 1 + below(9);
  }

  void run() {
    for (std::uint32_t troubles = 1 + below(5); troubles > 0; --troubles) {
      groups_.world.run_for(1 + below(3'000'000));
      trouble();
      check_agreement();
    }
    for (Rank from = 0; from < members_; ++from)
      for (Rank to = 0; to < members_; ++to) groups_.world.heal(from, to);
    groups_.world.run_for(50'000'000);
    check_agreement();
    check_progress();
  }

 private:
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  Rank some() { return below(members_); }

  void trouble() {
    sim::World& world = groups_.world;
    const Rank rank = some();
    const Rank other = some();
    switch (below(8)) {
      case 0:
        gone_[rank] = true;
        return world.crash(rank);
      case 1:
        gone_[rank] = true;
        return world.hang(rank);
      case 2:
        return world.pause(rank, below(6'000'000));
      case 3:
        return world.slow(rank, 1 + below(200));
      case 4:
        if (rank != other) world.cut(rank, other);
        return;
      case 5:
        if (rank == other) return;
        world.cut(rank, other);
        return world.cut(other, rank);
      case 6:
        if (rank != other) world.slow_link(rank, other, 1 + below(50));
        return;
      default:
        if (!gone_[rank]) world.on(rank, [this, rank] { groups_[rank].group->leave(); });
    }
  }

  void check_agreement() {
    std::map<std::uint64_t, std::vector<std::string>> members;
    std::map<std::uint64_t, std::vector<std::uint64_t>> trims;  // by the view that ended
    for (Rank rank = 0; rank < members_; ++rank) {
      const GroupNode& node = groups_[rank];
      std::uint64_t number = 1;
      for (const View& view : node.views) {
        ASSERT_EQ(view.number, number++);
        ASSERT_EQ(members.try_emplace(view.number, view.members).first->second, view.members);
        ASSERT_EQ(view.members[view.me], groups_.name(rank));
      }
      for (std::size_t i = 0; i < node.participant.trims.size(); ++i) {
        const std::vector<std::uint64_t>& trim = node.participant.trims[i];
        ASSERT_EQ(trims.try_emplace(i, trim).first->second, trim);
      }
    }
  }

  void check_progress() {
    std::uint64_t last = 0;
    for (Rank rank = 0; rank < members_; ++rank)
      if (!gone_[rank] && !groups_[rank].group->ended())
        last = std::max(last, groups_[rank].group->view().number);
    for (Rank rank = 0; rank < members_; ++rank) {
      if (gone_[rank] || groups_[rank].group->ended()) continue;
      EXPECT_EQ(groups_[rank].group->view().number, last) << "member " << rank << " lags behind";
      for (const std::string& name : groups_[rank].group->view().members)
        for (Rank other = 0; other < members_; ++other)
          EXPECT_FALSE(name == groups_.name(other) &&
                       (gone_[other] || groups_[other].group->ended()))
              << "member " << rank << " waits for " << name;
    }
  }

  std::mt19937_64 random_;
  std::uint32_t members_;
  SimGroups groups_;
  std::vector<bool> gone_;  // crashed or hung
};

TEST(GroupInSimulator, AgreesOnViewsWhateverHappens) {
  test::for_each_seed(test::Seeds(kSeeds), [](std::uint64_t seed) { Troubled(seed).run(); });
}

}  // namespace
}  // namespace dunlin

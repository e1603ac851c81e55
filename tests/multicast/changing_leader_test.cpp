#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "multicast/changing_group.hpp"

/// Members that are left behind while a subgroup changes: what they delivered until they noticed is
/// the beginning of what the others deliver (GRP-A6).
namespace dunlin {
namespace {

using test::ChangingGroup;
using test::ChangingMember;

constexpr std::uint64_t kMomentNs = 200;
constexpr std::uint64_t kMoments = 60;  // a change takes less
constexpr std::uint64_t kPauseNs = 5'000'000;

/// All are in one subgroup and send. The last one asks to be no sender any more; a moment later
/// `separate` leaves the first `behind` members behind.
struct Separation {
  Separation(std::uint32_t founders, std::uint32_t behind)
      : cluster(founders), members(founders), left_behind(behind) {}

  void run(std::uint64_t moment, const std::function<void(ChangingGroup&)>& separate) {
    for (Rank rank = 0; rank < cluster.size(); ++rank) {
      members[rank] = &cluster[rank].join("topic", {.ring_bytes = 4'096});
      cluster.world.attach(
          rank, [this, rank] { return !quiet && members[rank]->send(rank * 8) ? 1U : 0U; });
    }
    ASSERT_TRUE(cluster.until([&] {
      return std::ranges::all_of(members, [&](const ChangingMember* member) {
        return member->multicast->joined() &&
               member->multicast->subgroup().members.size() == cluster.size();
      });
    }));
    cluster.world.run_for(20'000);
    cluster.world.on(cluster.size() - 1, [this] { members.back()->multicast->set_sends(false); });
    cluster.world.run_for(moment * kMomentNs);
    separate(cluster);
    cluster.world.run_for(20'000);
    quiet = true;
    ASSERT_TRUE(cluster.until([&] {
      for (Rank rank = left_behind; rank < cluster.size(); ++rank)
        if (members[rank]->multicast->subgroup().view < 2) return false;
      return true;
    }));
    cluster.world.run_for(4 * kPauseNs);
    const std::vector<test::Said>& others = members[left_behind]->history;
    for (Rank rank = 0; rank < cluster.size(); ++rank) {
      const std::vector<test::Said>& own = members[rank]->history;
      const auto differ = std::ranges::mismatch(own, others);
      EXPECT_TRUE(differ.in1 == own.end() || differ.in2 == others.end())
          << "member " << rank << " delivers another message than the others as the "
          << differ.in1 - own.begin() + 1 << "th";
      EXPECT_EQ(cluster[rank].group->ended(), rank < left_behind);
    }
  }

  ChangingGroup cluster;
  std::vector<ChangingMember*> members;
  Rank left_behind;
  bool quiet = false;
};

TEST(ChangingSubgroups, HaveOneOrderAtALeaderThatIsPausedAmidAChange) {
  for (std::uint64_t moment = 0; moment < kMoments && !testing::Test::HasFailure(); ++moment) {
    SCOPED_TRACE(moment);
    Separation(3, 1).run(moment, [](ChangingGroup& cluster) { cluster.world.pause(0, kPauseNs); });
  }
}

TEST(ChangingSubgroups, HaveOneOrderAtAMinorityThatIsCutOffAmidAChange) {
  for (std::uint64_t moment = 0; moment < kMoments && !testing::Test::HasFailure(); ++moment) {
    SCOPED_TRACE(moment);
    Separation(5, 2).run(moment, [](ChangingGroup& cluster) {
      for (const Rank here : {0U, 1U})
        for (const Rank there : {2U, 3U, 4U}) {
          cluster.world.cut(here, there);
          cluster.world.cut(there, here);
        }
    });
  }
}

}  // namespace
}  // namespace dunlin

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "multicast/changing_group.hpp"

/// A leader that is left behind while a subgroup changes: what it delivered until it noticed is the
/// beginning of what the others deliver (GRP-A6).
namespace dunlin {
namespace {

using test::ChangingGroup;
using test::ChangingMember;

constexpr std::uint64_t kMomentNs = 200;
constexpr std::uint64_t kMoments = 60;  // a change takes less
constexpr std::uint64_t kPauseNs = 5'000'000;

/// All are in one subgroup and send. One asks to be no sender any more; a moment later the leader
/// is paused until the others have gone on without it.
void pause_leader_after(std::uint64_t moment) {
  constexpr std::uint32_t kMembers = 3;
  ChangingGroup cluster(kMembers);
  std::array<ChangingMember*, kMembers> members{};
  bool quiet = false;
  for (Rank rank = 0; rank < kMembers; ++rank) {
    members[rank] = &cluster[rank].join("topic", {.ring_bytes = 4'096});
    cluster.world.attach(rank, [&quiet, rank, member = members[rank]] {
      return !quiet && member->send(rank * 8) ? 1U : 0U;
    });
  }
  ASSERT_TRUE(cluster.until([&] {
    return std::ranges::all_of(members, [](const ChangingMember* member) {
      return member->multicast->joined() &&
             member->multicast->subgroup().members.size() == kMembers;
    });
  }));
  cluster.world.run_for(20'000);
  cluster.world.on(2, [&] { members[2]->multicast->set_sends(false); });
  cluster.world.run_for(moment * kMomentNs);
  cluster.world.pause(0, kPauseNs);
  cluster.world.run_for(20'000);
  quiet = true;
  ASSERT_TRUE(cluster.until([&] {
    return members[1]->multicast->subgroup().view == 2 &&
           members[2]->multicast->subgroup().view == 2;
  }));
  cluster.world.run_for(2 * kPauseNs);
  EXPECT_TRUE(cluster[0].group->ended());
  for (const Rank rank : {0U, 2U}) {
    const std::vector<test::Said>& own = members[rank]->history;
    const std::vector<test::Said>& others = members[1]->history;
    const auto differ = std::ranges::mismatch(own, others);
    EXPECT_TRUE(differ.in1 == own.end() || differ.in2 == others.end())
        << "member " << rank << " delivers another message than member 1 as the "
        << differ.in1 - own.begin() + 1 << "th";
  }
}

TEST(ChangingSubgroups, HaveOneOrderAtALeaderThatIsPausedAmidAChange) {
  for (std::uint64_t moment = 0; moment < kMoments && !testing::Test::HasFailure(); ++moment) {
    SCOPED_TRACE(moment);
    pause_leader_after(moment);
  }
}

}  // namespace
}  // namespace dunlin

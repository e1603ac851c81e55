#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "multicast/changing_group.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

/// Members that join one subgroup after the other and leave it at once, while one of them fails, in
/// the simulator: changing_process_test.cpp does the same with processes.
namespace dunlin {
namespace {

using test::ChangingGroup;
using test::ChangingMember;

constexpr std::uint32_t kWanderers = 3;
constexpr std::uint32_t kWanderedTopics = 3;
constexpr std::uint32_t kEnough = 20;  // changes in view 2: then it stays
constexpr std::uint32_t kCrashSeeds = 400;

/// Goes from one subgroup to the next.
struct Wanderer {
  ChangingMember* member = nullptr;
  std::uint32_t changes = 0;
  std::uint32_t in_view_2 = 0;
  std::string topic = {};

  std::size_t step(test::ChangingNode& node) {
    if (!node.group->why_ended().empty() || node.views.empty()) return 0;
    if (in_view_2 == kEnough || (member != nullptr && !member->multicast->joined())) return 0;
    if (member != nullptr) node.members.erase(topic);
    topic = "topic" + std::to_string(++changes % kWanderedTopics);
    if (node.views.back().number == 2) ++in_view_2;
    member = &node.join(topic, {.ring_bytes = 4'096});
    return 1;
  }
};

void go_on(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  ChangingGroup cluster(kWanderers, 0, seed);
  std::array<Wanderer, kWanderers> wanderers;
  for (Rank rank = 0; rank < kWanderers; ++rank) {
    cluster.world.slow(rank, 1 + static_cast<double>(random() % 20));
    cluster.world.attach(rank, [&, rank] { return wanderers[rank].step(cluster[rank]); });
  }
  cluster.world.run_for(200'000 + random() % 400'000);
  const Rank dead = static_cast<Rank>(random() % kWanderers);
  const Rank cut_off = static_cast<Rank>((dead + 1 + random() % 2) % kWanderers);
  if (random() % 2 == 0) {  // one hears nothing of the last changes
    cluster.world.cut(dead, cut_off);
    cluster.world.run_for(random() % 60'000);
  }
  cluster.world.crash(dead);
  const bool all = cluster.until([&] {
    for (Rank rank = 0; rank < kWanderers; ++rank)
      if (rank != dead && wanderers[rank].in_view_2 < kEnough) return false;
    return true;
  });
  for (Rank rank = 0; !all && rank < kWanderers; ++rank)
    EXPECT_TRUE(rank == dead || wanderers[rank].in_view_2 == kEnough)
        << "member " << rank << " waits to be in " << wanderers[rank].topic
        << wanderers[rank].member->multicast->why_left() << cluster[rank].group->why_ended();
}

TEST(ChangingSubgroups, GoOnWhereverAMemberFailsInTheMidstOfChanges) {
  test::for_each_seed(test::Seeds(test::rounds(kCrashSeeds)),
                      [](std::uint64_t seed) { go_on(seed); });
}

}  // namespace
}  // namespace dunlin

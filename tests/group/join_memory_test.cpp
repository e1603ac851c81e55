#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <malloc.h>

#include <dunlin/group.hpp>
#include <dunlin/run.hpp>

#include "group/cluster_fixture.hpp"
#include "support/node_backend.hpp"
#include "support/process.hpp"
#include "support/rounds.hpp"

/// What members that come and leave take, they give back. A fabric gives no rank twice, so a member
/// keeps a little for each that was given: its name, and why it went.
namespace dunlin {
namespace {

using test::ClusterFixture;
using test::kPatienceMs;
using test::Parent;
using test::Process;

/// Under a sanitizer always 0.
std::size_t allocated_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// A state comes with each join.
void join_and_leave(ClusterFixture& cluster) {
  cluster[3].come();
  ASSERT_TRUE(cluster.until_view_of({0, 1, 2, 3}, 10)) << cluster.text();
  cluster.world.on(3, [&] { cluster[3].group->leave(); });
  ASSERT_TRUE(cluster.until_view_of({0, 1, 2}) && cluster.until([&] {
    return cluster[3].group->ended();
  })) << cluster.text();
  cluster[3].multicast.reset();
  cluster[3].group.reset();
  cluster[3].views.clear();
  cluster[3].history.clear();
  for (Rank node = 0; node < 3; ++node) cluster[node].views = {cluster[node].views.back()};
}

/// Some two minutes apart, these are twelve hours' joins and leaves. The simulator, too, remembers
/// each node that ever was in a fabric.
TEST(JoinsAndLeaves, LeaveMemoryAsItWasInSimulator) {
  constexpr std::size_t kPerJoin = 16'384;
  ClusterFixture cluster(3, 1, 1, {.ring_bytes = 4'096});
  cluster[0].send(10);
  ASSERT_TRUE(cluster.until_view_of({0, 1, 2}, 10));
  std::size_t before = 0;
  for (std::uint32_t join = 1; join <= 300; ++join) {
    ASSERT_NO_FATAL_FAILURE(join_and_leave(cluster)) << join;
    cluster.world.run_for(144'000'000'000);
    if (join == 100) before = allocated_bytes();
  }
  EXPECT_EQ(cluster[0].group->view().number, 601U);
  EXPECT_LE(allocated_bytes(), before + 200 * kPerJoin);
}

struct Held {
  std::size_t descriptors = 0;
  std::size_t mappings = 0;  // of files: a sanitizer makes others
  std::size_t bytes = 0;

  static Held now() {
    namespace fs = std::filesystem;
    std::ifstream maps("/proc/self/maps");
    Held held{.bytes = allocated_bytes()};
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      static_cast<void>(entry);
      ++held.descriptors;
    }
    for (std::string line; std::getline(maps, line);)
      if (line.find('/') != std::string::npos) ++held.mappings;
    return held;
  }
  [[nodiscard]] std::string text() const {
    return std::to_string(descriptors) + " descriptors, " + std::to_string(mappings) +
           " mappings, " + std::to_string(bytes) + " bytes";
  }
};

struct JoinsAndLeavesOfProcesses : test::OnProcesses {
  JoinsAndLeavesOfProcesses() { members = kFounders; }
  static constexpr std::uint32_t kFounders = 2;
  static constexpr std::uint64_t kFirst = 10;  // joins, before it is counted
  /// With fewer joins, what a process keeps of its first ones counts for too much.
  static constexpr std::uint64_t kJoins = kFirst + (test::kSanitized ? 5 : 40);
  static constexpr std::size_t kListeners = 2;  // that may be open at one moment and not at another
  [[nodiscard]] GroupOptions options(Rank rank) const { return {.rendezvous = rendezvous(rank)}; }
};

DUNLIN_RUN_ON(test::backends(), JoinsAndLeavesOfProcesses);

/// Over shm a member keeps a table of 33 KB for each rank, and gives mappings back one after the
/// other.
TEST_P(JoinsAndLeavesOfProcesses, GiveBackDescriptorsMappingsAndMemory) {
  const std::size_t per_join = std::string(GetParam().name) == "Shm" ? 49'152 : 8'192;
  const auto founder = [&](Rank rank) {
    return Process([this, rank, per_join](Parent& parent) {
      const auto fabric = join(rank);
      Group group(*fabric, options(rank));
      Held before;
      Held after;
      const bool all = run_until(
          group,
          [&] {
            const std::uint64_t view = group.view().number;
            if (before.descriptors == 0 && view == 1 + 2 * kFirst) before = Held::now();
            if (view != 1 + 2 * kJoins) return false;
            after = Held::now();
            return after.descriptors <= before.descriptors + kListeners &&
                   after.mappings <= before.mappings + 8;
          },
          kPatienceMs / 4);
      const bool little = after.bytes <= before.bytes + (kJoins - kFirst) * per_join;
      parent.send_line(all && little ? "given back" : before.text() + "; then " + after.text());
      run_until(
          group, [] { return false; }, kPatienceMs);
      return 1;
    });
  };
  Process first = founder(0);
  Process second = founder(1);
  Process comer([&](Parent&) {
    for (std::uint64_t join = 0; join < kJoins; ++join) {
      const auto group = Group::join("late", options(kFounders), kPatienceMs);
      group->leave();
      if (!run_until(
              *group, [&] { return group->ended(); }, kPatienceMs))
        return 1;
    }
    return 0;
  });
  EXPECT_EQ(comer.exit_code(), 0);
  EXPECT_EQ(first.receive_line(), "given back");
  EXPECT_EQ(second.receive_line(), "given back");
}

}  // namespace
}  // namespace dunlin

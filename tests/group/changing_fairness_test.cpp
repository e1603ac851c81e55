#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "group/sim_groups.hpp"

/// Subgroups that come and go: a member that asks comes in, whatever the others do.
namespace dunlin {
namespace {

using test::SimGroups;

/// Wants the state, and never gives one.
class Silent final : public SubgroupParticipant {
 public:
  std::size_t begun = 0;
  bool lacks_state = false;
  bool gone = false;

  void begin(Fabric&, const Subgroup& subgroup) override {
    ++begun;
    lacks_state = subgroup.lacks_state;
    counts_.assign(subgroup.senders.size(), 0);
  }
  std::size_t poll() override { return 0; }
  void wedge() noexcept override {}
  std::span<const std::uint64_t> received() const noexcept override { return counts_; }
  void finish(std::span<const std::uint64_t>, std::span<const Rank>) override {}
  bool wants_state() const noexcept override { return true; }
  void left(const std::string&) override { gone = true; }

 private:
  std::vector<std::uint64_t> counts_;
};

/// GRP-D7: the leader goes and comes again in one breath, and its own words reach it at once. The
/// member that it has left without a state must not come too late for the next change.
TEST(ChangingFairness, AMemberThatWaitsForTheStateComesInWithTheOneThatLeavesAndComesAgain) {
  Silent first, again, waits;
  SimGroups groups(2);
  ASSERT_TRUE(groups.run_until_view_of({0, 1}));
  groups.world.on(0, [&] { groups[0].group->join_subgroup("t", first, {}); });
  ASSERT_TRUE(groups.world.run_until([&] { return first.begun == 1; }, test::kLongNs));
  groups.world.on(1, [&] { groups[1].group->join_subgroup("t", waits, {}); });
  ASSERT_TRUE(groups.world.run_until([&] { return waits.begun == 1; }, test::kLongNs));
  EXPECT_TRUE(waits.lacks_state);
  groups.world.on(0, [&] {
    groups[0].group->leave_subgroup("t");
    groups[0].group->join_subgroup("t", again, {});
  });
  ASSERT_TRUE(groups.world.run_until([&] { return first.gone && again.begun > 0; }, test::kLongNs));
  EXPECT_TRUE(groups.world.run_until([&] { return waits.begun == 2 && !waits.lacks_state; },
                                     test::kLongNs));
  EXPECT_FALSE(again.lacks_state);
}

}  // namespace
}  // namespace dunlin

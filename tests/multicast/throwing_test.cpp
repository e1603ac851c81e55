#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/group/subgroup_part.hpp>

#include "group/joining_groups.hpp"

/// What user code throws comes out of poll(), and whoever polls again goes on as if it had not.
namespace dunlin {
namespace {

using test::Town;

TEST(Throwing, OfAViewHandlerLeavesNothingUndone) {
  Town town(2, 0);
  town[0].catches = true;
  town[0].group->on_view([&](const View& view) {
    town[0].views.push_back(view);
    throw std::runtime_error("the handler's");
  });
  town[0].send(10);
  town[1].send(10);
  ASSERT_TRUE(town.until_view_of({0, 1}, 20)) << town.text();
  EXPECT_EQ(town[0].caught, 1U);
}

/// What the others had sent is delivered at the end of the view, in several batches.
TEST(Throwing, OfAnUpcallWhileTheViewEndsLosesAndRepeatsNothing) {
  Town town(3, 0);
  town[1].catches = true;
  town[1].multicast->on_delivery([&](std::span<const multicast::Delivery> batch) {
    for (const multicast::Delivery& delivery : batch)
      town[1].history.emplace_back(reinterpret_cast<const char*>(delivery.message.data()),
                                   delivery.message.size());
    if (town[1].views.size() == 1) throw std::runtime_error("the upcall's");
  });
  ASSERT_TRUE(town.until_view_of({0, 1, 2}));
  town.world.hang(2);  // so nothing is stable any more
  town[0].send(500);
  town[1].send(500);
  ASSERT_TRUE(town.until_view_of({0, 1}, 1'000)) << town.text();
  EXPECT_GE(town[1].caught, 1U);
  EXPECT_EQ(town[0].history.size(), 1'000U);
}

TEST(Throwing, OfAnUpcallIsFollowedByTheRest) {
  Town town(2, 0);
  ASSERT_TRUE(town.until_view_of({0, 1}));
  town[1].catches = true;
  town[1].multicast->on_delivery([&](std::span<const multicast::Delivery> batch) {
    for (const multicast::Delivery& delivery : batch)
      town[1].history.emplace_back(reinterpret_cast<const char*>(delivery.message.data()),
                                   delivery.message.size());
    throw std::runtime_error("the upcall's");
  });
  town[0].send(1'000);
  ASSERT_TRUE(town.until_view_of({0, 1}, 1'000)) << town.text();
  EXPECT_GE(town[1].caught, 4U);
}

TEST(Throwing, OfWhoShouldGiveItsStateSendsTheOtherElsewhere) {
  Town town(2, 1);
  town[0].catches = true;
  town[0].multicast->on_state(
      []() -> std::vector<std::byte> { throw std::runtime_error("the state's"); },
      [](std::span<const std::byte>) {});
  town[0].send(10);
  ASSERT_TRUE(town.until_view_of({0, 1}, 10)) << town.text();
  town[2].come();
  ASSERT_TRUE(town.until_view_of({0, 1, 2}, 10)) << town.text();
  EXPECT_EQ(town[0].caught, 1U);
  EXPECT_EQ(town[2].loads, 1U);
}

TEST(Throwing, OfWhoTakesAStateEndsItsMembershipWithoutADelivery) {
  Town town(2, 1);
  town[2].catches = town[2].fails_to_load = true;
  town[0].send(10);
  ASSERT_TRUE(town.until_view_of({0, 1}, 10)) << town.text();
  town[2].come();
  ASSERT_TRUE(town.until([&] { return town[2].group && town[2].group->ended(); })) << town.text();
  town[0].send(10);
  ASSERT_TRUE(town.until_view_of({0, 1}, 20)) << town.text();
  EXPECT_EQ(town[2].loads, 1U);
  EXPECT_EQ(town[2].caught, 1U);
  EXPECT_TRUE(town[2].history.empty());
}

/// In view 1 there would be nothing yet to poll.
TEST(Throwing, IsWhatPollDoesInAnUpcall) {
  Town town(2, 0);
  std::uint32_t refused = 0;
  const auto poll = [&] {
    EXPECT_THROW((void)town[0].group->poll(), Error);
    ++refused;
  };
  town[0].group->on_view([&](const View& view) {
    town[0].views.push_back(view);
    poll();
  });
  town[0].multicast->on_delivery([&](std::span<const multicast::Delivery> batch) {
    town[0].history.resize(town[0].history.size() + batch.size());
    poll();
  });
  town[1].multicast->on_delivery([&](std::span<const multicast::Delivery> batch) {
    town[1].history.resize(town[1].history.size() + batch.size());
  });
  town[1].send(10);
  ASSERT_TRUE(town.until_view_of({0, 1}, 10)) << town.text();
  EXPECT_GE(refused, 2U);
}

TEST(ViewHandler, CanBeTakenAway) {
  Town town(2, 0);
  town[0].group->on_view(nullptr);
  ASSERT_TRUE(town.until([&] { return !town[1].views.empty(); }));
  EXPECT_TRUE(town[0].views.empty());
  EXPECT_EQ(town[0].group->view().number, 1U);
}

TEST(Throwing, OfAPartThatCannotBeginEndsTheGroup) {
  class NoPart final : public SubgroupPart {
   public:
    void begin(Fabric&, const Subgroup&) override { throw Error("no memory, say"); }
    std::size_t poll() override {
      ADD_FAILURE() << "it has not begun";
      return 0;
    }
    void wedge() noexcept override {}
    std::span<const std::uint64_t> received() const noexcept override { return {}; }
    void finish(std::span<const std::uint64_t>) override {}
  };
  sim::World world(sim::profile("ideal"), 1, 1);
  Group group(world.fabric(0), {.subgroups = {{.name = "all"}}});
  NoPart part;
  group.attach("all", part);
  EXPECT_THROW((void)group.poll(), Error);
  world.attach(0, [&] { return group.poll(); });
  EXPECT_TRUE(world.run_until([&] { return group.ended(); }, 1'000'000));
  EXPECT_NE(group.why_ended().find("'all' could not begin view 1: no memory, say"),
            std::string::npos)
      << group.why_ended();
}

}  // namespace
}  // namespace dunlin

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/segment.hpp>

#include "support/errors.hpp"

/// Spaces that cannot be, or differ at two members.
namespace dunlin {
namespace {

using remote::Status;
using test::contains;
using test::what_is_thrown_by;

TEST(SpaceOptions, ThatDifferAreRefusedAndBothSidesAreToldWhich) {
  sim::World world(sim::profile("ib100"), 2, 1);
  std::vector<std::unique_ptr<SegmentSpace>> spaces;
  for (Rank rank = 0; rank < 2; ++rank) {
    SpaceOptions options;
    options.channel = 10 + rank;
    options.lock_channel = 20;
    spaces.push_back(std::make_unique<SegmentSpace>(world.fabric(rank), options));
    world.attach(rank, [space = spaces.back().get()] { return space->poll(); });
  }
  auto early = spaces[0]->allocate({.bytes = 8, .placement = {1}});  // before they have connected
  world.run_for(1'000'000);
  for (Rank by = 0; by < 2; ++by) {
    const std::string& why = spaces[by]->why_refused();
    const std::string one = std::to_string(10 + by), other = std::to_string(11 - by);
    EXPECT_TRUE(contains(why, "segment space 'space': ")) << why;
    std::string differs = "'channel' is '";
    differs.append(other).append("' there and '").append(one).append("' here");
    EXPECT_TRUE(contains(why, differs)) << why;
    auto there = spaces[by]->allocate({.bytes = 8, .placement = {1 - by}});
    EXPECT_TRUE(world.run_until([&] { return there.finished(); }, 1'000'000'000)) << "hangs";
    EXPECT_EQ(there.status(), Status::refused);
    EXPECT_TRUE(contains(there.describe(), why)) << there.describe();
    auto here = spaces[by]->allocate({.bytes = 8, .placement = {by}});
    EXPECT_TRUE(world.run_until([&] { return here.finished(); }, 1'000'000'000)) << "hangs";
    EXPECT_EQ(here.status(), Status::ok);
  }
  EXPECT_TRUE(world.run_until([&] { return early.finished(); }, 1'000'000'000)) << "hangs";
  EXPECT_EQ(early.status(), Status::refused);
  for (Rank rank = 0; rank < 2; ++rank) world.detach_all(rank);
}

TEST(SpaceOptions, OfASpaceThatThisProcessHasAreRefused) {
  sim::World world(sim::profile("ib100"), 1, 1);
  const SegmentSpace space(world.fabric(0));
  SpaceOptions options;
  options.channel = 10;
  options.lock_channel = 11;
  const std::string why =
      what_is_thrown_by([&] { const SegmentSpace second(world.fabric(0), options); });
  EXPECT_TRUE(contains(why, "segment space 'space': this process has one of this name already"))
      << why;
  options.name = "other";
  const SegmentSpace other(world.fabric(0), options);
}

}  // namespace
}  // namespace dunlin

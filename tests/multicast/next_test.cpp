#include <array>
#include <optional>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>

/// Delivery by next() instead of an upcall.
namespace dunlin {
namespace {

/// Or a loop would sleep between two messages, and who waits for room would wait with it.
TEST(Next, IsFollowedByAPollThatHasSomethingToDo) {
  sim::World world(sim::profile("ideal"), 1, 1);
  Group group(world.fabric(0), {.subgroups = {{.name = "all"}}});
  Multicast multicast(group, "all");
  const auto poll = [&] {
    std::size_t done = 0;
    world.on(0, [&] { done = group.poll(); });
    world.run_for(1'000);
    return done;
  };
  poll();
  EXPECT_EQ(multicast.send(std::array<std::byte, 8>{}), multicast::SendResult::sent);
  EXPECT_EQ(multicast.send(std::array<std::byte, 8>{}), multicast::SendResult::sent);
  while (poll() > 0) {
  }
  for (int message = 0; message < 2; ++message) {
    EXPECT_TRUE(multicast.next().has_value());
    EXPECT_GT(poll(), 0U);
  }
  EXPECT_FALSE(multicast.next().has_value());
  EXPECT_EQ(poll(), 0U);
}

}  // namespace
}  // namespace dunlin

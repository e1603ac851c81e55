#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

/// A message that was found in a view and delivered beyond its end comes again in the next one;
/// what waits in the view before is no repetition of it.
TEST(Next, TakesEachMessageOnceOverViewsThatEndEarly) {
  constexpr std::uint64_t kStretchNs = 1'000'000;
  sim::World world(sim::profile("ib100"), 3, 1);
  std::vector<std::unique_ptr<Group>> groups;
  std::vector<std::unique_ptr<Multicast>> members(3);
  for (Rank rank = 0; rank < 3; ++rank) {
    groups.push_back(std::make_unique<Group>(world.fabric(rank), GroupOptions{}));
    world.attach(rank, [&groups, rank] { return groups[rank]->poll(); });
  }
  for (Rank rank = 0; rank < 3; ++rank)
    world.on(rank, [&, rank] {
      members[rank] =
          Multicast::join(*groups[rank], "all", {.mode = multicast::Mode::unordered}, {});
      if (rank != 0) members[rank]->on_delivery([](std::span<const multicast::Delivery>) {});
    });
  ASSERT_TRUE(world.run_until(
      [&] {
        return std::ranges::all_of(members, [](const auto& member) {
          return member && member->joined() && member->subgroup().members.size() == 3;
        });
      },
      100 * kStretchNs));
  world.run_for(kStretchNs);
  const auto send = [&](const std::string& text) {
    world.on(2, [&, text] {
      EXPECT_EQ(members[2]->send(std::as_bytes(std::span(text))), multicast::SendResult::sent);
    });
  };
  // Any change of the subgroup ends its generation.
  const auto end_generation = [&](Rank by) {
    const std::uint64_t before = members[1]->subgroup().generation();
    world.on(by, [&] { members[by]->set_sends(false); });
    ASSERT_TRUE(world.run_until([&] { return members[1]->subgroup().generation() != before; },
                                100 * kStretchNs));
    world.run_for(kStretchNs);
  };
  for (const char* text : {"m0", "m1", "m2", "m3"}) send(text);
  world.run_for(kStretchNs);
  end_generation(1);
  world.pause(1, 200'000);  // so that it has not received k0 when the generation ends
  send("k0");
  world.run_for(50'000);
  end_generation(0);

  std::vector<std::string> taken;
  for (int round = 0; round < 3; ++round) {
    world.on(0, [&] {
      while (const std::optional<multicast::Delivery> message = members[0]->next())
        taken.emplace_back(reinterpret_cast<const char*>(message->message.data()),
                           message->message.size());
    });
    world.run_for(kStretchNs);
  }
  EXPECT_EQ(taken, (std::vector<std::string>{"m0", "m1", "m2", "m3", "k0"}));
}

/// What is found at once is returned one by one, and the state for a newcomer is that of a moment
/// at which all of it has been returned.
TEST(Next, LetsAMemberInWhoseCallerPausesAmidWhatWasFound) {
  constexpr std::uint64_t kStretchNs = 100'000;
  constexpr int kMessages = 300, kAtOnce = 5;
  sim::World world(sim::profile("ib100"), 3, 1);
  std::vector<std::unique_ptr<Group>> groups;
  std::vector<std::unique_ptr<Multicast>> members(3);
  int taken = 0, in_state = -1;
  for (Rank rank = 0; rank < 3; ++rank) {
    groups.push_back(std::make_unique<Group>(world.fabric(rank), GroupOptions{}));
    world.attach(rank, [&groups, rank] { return groups[rank]->poll(); });
  }
  const auto join = [&](Rank rank) {
    members[rank] = Multicast::join(*groups[rank], "all", {}, {});
    members[rank]->on_state(
        [&taken] { return std::vector(static_cast<std::size_t>(taken), std::byte{1}); },
        [&in_state](std::span<const std::byte> state) {
          in_state = static_cast<int>(state.size());
        });
    if (rank != 0) members[rank]->on_delivery([](std::span<const multicast::Delivery>) {});
  };
  join(0);
  join(1);
  ASSERT_TRUE(world.run_until(
      [&] {
        static_cast<void>(members[0]->next());  // or it stays in an earlier view
        return members[0]->joined() && members[1]->joined() &&
               members[0]->subgroup().members.size() == 2;
      },
      1'000 * kStretchNs));
  in_state = -1;
  world.on(0, [&] {
    for (int i = 0; i < kMessages; ++i)
      ASSERT_EQ(members[0]->send(std::array<std::byte, 8>{}), multicast::SendResult::sent);
  });
  world.run_for(10 * kStretchNs);
  join(2);
  world.on(2, [] {});
  // Those of the view before the newcomer come first.
  while (in_state < 0 && taken < 2 * kMessages) {
    world.on(0, [&] {
      for (int i = 0; i < kAtOnce && members[0]->next(); ++i) ++taken;
      static_cast<void>(members[0]->send(std::array<std::byte, 8>{}));
    });
    for (int i = 0; i < kAtOnce; ++i)
      world.on(0, [&] { static_cast<void>(members[0]->send(std::array<std::byte, 8>{})); });
    world.run_for(kStretchNs);
  }
  EXPECT_GE(in_state, kMessages);
  EXPECT_LT(in_state, kMessages + 100) << "it is given before a batch happens to end where we do";
}

}  // namespace
}  // namespace dunlin

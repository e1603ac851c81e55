#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <dunlin/fabric/shm.hpp>

#include "support/errors.hpp"
#include "support/fresh_group.hpp"
#include "support/ground.hpp"

/// Doors on one host, where others do not go on. Whoever is polled no more is to the others a
/// process that was stopped: it has its addresses and connections, and does not answer.
namespace dunlin {
namespace {

using test::contains;
using test::fresh_group;
using test::kPatienceMs;
using test::what_is_thrown_by;

struct ShmDoor : testing::Test {
  const std::string group = fresh_group();
  const std::shared_ptr<MeetingPlace> place = shm::meeting_place({.group = group});

  /// The two meet. Whoever knocks in vain does so again.
  void expect_meeting(Formation& opening) const {
    std::unique_ptr<Formation> knock = place->knock();
    std::unique_ptr<Fabric> inside;
    std::unique_ptr<Fabric> outside;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (!inside || !outside) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up) << "they do not meet";
      if (!inside) inside = opening.poll();
      try {
        if (!outside) outside = knock->poll();
      } catch (const Error&) {
        knock = place->knock();
      }
      std::this_thread::yield();
    }
    EXPECT_EQ(inside->rank(), 0U);
    EXPECT_EQ(outside->rank(), 1U);
    EXPECT_EQ(outside->send(0, 0, {}), Refusal::none);
    bool heard = false;
    inside->receive(0, [&](Rank, std::span<const std::byte>) { heard = true; });
    while (!heard) {
      inside->poll();
      outside->poll();
    }
  }
};

TEST_F(ShmDoor, IsOpenThoughWhoOpenedBeforeWasStopped) {
  const std::unique_ptr<Formation> stopped = place->open();
  EXPECT_EQ(stopped->poll(), nullptr);
  const std::unique_ptr<Formation> opening = place->open();
  expect_meeting(*opening);
}

TEST_F(ShmDoor, GivesUpAGuestThatWasStoppedOnTheWay) {
  for (int steps = 1; steps < 6; ++steps) {
    const std::unique_ptr<Formation> opening = place->open();
    const std::unique_ptr<Formation> stopped = place->knock();
    bool met = false;
    for (int step = 0; step < steps && !met; ++step) {
      met = stopped->poll() != nullptr;
      met = opening->poll() != nullptr || met;
    }
    if (met) break;  // from here on it is a member of a fabric, and found silent
    expect_meeting(*opening);
  }
}

TEST_F(ShmDoor, LetsTheNextOneInWhenAGuestHasGone) {
  const std::unique_ptr<Formation> opening = place->open();
  {
    const std::unique_ptr<Formation> gone = place->knock();
    EXPECT_EQ(gone->poll(), nullptr);
    EXPECT_EQ(opening->poll(), nullptr);
  }
  expect_meeting(*opening);
}

TEST_F(ShmDoor, SaysThatNobodyHasOpened) {
  const std::unique_ptr<Formation> knock = place->knock();
  const std::string text = what_is_thrown_by([&] {
    while (!knock->poll()) std::this_thread::yield();
  });
  EXPECT_TRUE(contains(text, "group '" + group + "': nobody has opened it here")) << text;
}

TEST_F(ShmDoor, SaysWhoHasOpenedAndDoesNotAnswer) {
  const std::unique_ptr<Formation> stopped = place->open();
  const std::unique_ptr<Formation> knock = place->knock();
  const std::string text = what_is_thrown_by([&] {
    while (!knock->poll()) std::this_thread::yield();
  });
  EXPECT_TRUE(contains(text, "does not answer (pid " + std::to_string(getpid()) + ")")) << text;
}

TEST_F(ShmDoor, CannotBeOpenedWhereAllItsAddressesAreHeld) {
  std::vector<std::unique_ptr<Formation>> stopped;
  const std::string text = what_is_thrown_by([&] {
    while (stopped.size() <= kMaxViewMembers) stopped.push_back(place->open());
  });
  EXPECT_EQ(stopped.size(), kMaxViewMembers);
  EXPECT_TRUE(contains(text, "doors are held")) << text;
  EXPECT_TRUE(contains(text, "pid " + std::to_string(getpid()))) << text;
}

}  // namespace
}  // namespace dunlin

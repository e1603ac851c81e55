#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <dunlin/join.hpp>

#include "support/errors.hpp"
#include "support/fresh_group.hpp"
#include "support/node_backend.hpp"

/// Doors on one host, where others do not go on. Whoever is polled no more is to the others a
/// process that was stopped: it has its addresses and connections, and does not answer.
namespace dunlin {
namespace {

using test::contains;
using test::fresh_group;
using test::kPatienceMs;
using test::what_is_thrown_by;

struct ShmListener : testing::Test {
  const std::string group = fresh_group();
  const std::shared_ptr<Rendezvous> place = make_rendezvous({.group = group});

  /// The two meet. Whoever connects in vain does so again.
  void expect_roster(PendingJoin& accepting) const {
    std::unique_ptr<PendingJoin> connect = place->connect();
    std::unique_ptr<Fabric> inside;
    std::unique_ptr<Fabric> outside;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (!inside || !outside) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up) << "they do not meet";
      if (!inside) inside = accepting.poll();
      try {
        if (!outside) outside = connect->poll();
      } catch (const Error&) {
        connect = place->connect();
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

TEST_F(ShmListener, IsOpenThoughWhoOpenedBeforeWasStopped) {
  const std::unique_ptr<PendingJoin> stopped = place->accept();
  EXPECT_EQ(stopped->poll(), nullptr);
  const std::unique_ptr<PendingJoin> accepting = place->accept();
  expect_roster(*accepting);
}

TEST_F(ShmListener, GivesUpAJoinerThatWasStoppedOnTheWay) {
  for (int steps = 1; steps < 6; ++steps) {
    const std::unique_ptr<PendingJoin> accepting = place->accept();
    const std::unique_ptr<PendingJoin> stopped = place->connect();
    bool met = false;
    for (int step = 0; step < steps && !met; ++step) {
      met = stopped->poll() != nullptr;
      met = accepting->poll() != nullptr || met;
    }
    if (met) break;  // from here on it is a member of a fabric, and found silent
    expect_roster(*accepting);
  }
}

TEST_F(ShmListener, LetsTheNextOneInWhenAJoinerHasGone) {
  const std::unique_ptr<PendingJoin> accepting = place->accept();
  {
    const std::unique_ptr<PendingJoin> gone = place->connect();
    EXPECT_EQ(gone->poll(), nullptr);
    EXPECT_EQ(accepting->poll(), nullptr);
  }
  expect_roster(*accepting);
}

TEST_F(ShmListener, SaysThatNobodyHasOpened) {
  const std::unique_ptr<PendingJoin> connect = place->connect();
  const std::string text = what_is_thrown_by([&] {
    while (!connect->poll()) std::this_thread::yield();
  });
  EXPECT_TRUE(contains(text, "group '" + group + "': no member listens here for joiners")) << text;
}

TEST_F(ShmListener, SaysWhoHasOpenedAndDoesNotAnswer) {
  const std::unique_ptr<PendingJoin> stopped = place->accept();
  const std::unique_ptr<PendingJoin> connect = place->connect();
  const std::string text = what_is_thrown_by([&] {
    while (!connect->poll()) std::this_thread::yield();
  });
  EXPECT_TRUE(contains(text, "does not answer (pid " + std::to_string(getpid()) + ")")) << text;
}

TEST_F(ShmListener, CannotBeOpenedWhereAllItsAddressesAreHeld) {
  std::vector<std::unique_ptr<PendingJoin>> stopped;
  const std::string text = what_is_thrown_by([&] {
    while (stopped.size() <= kMaxViewMembers) stopped.push_back(place->accept());
  });
  EXPECT_EQ(stopped.size(), kMaxViewMembers);
  EXPECT_TRUE(contains(text, "listener addresses are held")) << text;
  EXPECT_TRUE(contains(text, "pid " + std::to_string(getpid()))) << text;
}

}  // namespace
}  // namespace dunlin

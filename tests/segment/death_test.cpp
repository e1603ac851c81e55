#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/run.hpp>
#include <dunlin/segment.hpp>

#include "segment/spaces.hpp"

/// Spaces of real processes, some of which are killed.
namespace dunlin {
namespace {

using remote::Status;
using test::kPatienceNs;
using test::Parent;
using test::Process;
using test::SpaceMember;

struct SegmentDeath : test::OnSpacesOfProcesses {};
DUNLIN_RUN_ON(test::backends(), SegmentDeath);

/// Allocates on that member, and tells the key.
Key make(SpaceMember& member, Parent& parent, Rank home) {
  auto made = member.space.allocate({.bytes = 8, .placement = Placement::on(home)});
  const Key key = made.outcome(kPatienceNs).key;
  parent.send_line(made.ok() ? std::to_string(key.value) : made.describe());
  return key;
}

/// REM-11 passes the lock on, and by REM-12 the waiter is told.
TEST_P(SegmentDeath, ALockPassesFromAKilledHolderToItsWaiter) {
  Process home = start_serving(0);
  Process holder = start(1, [](SpaceMember& member, Parent& parent) {
    const Key key = make(member, parent, 0);
    std::uint64_t value = 7;
    static_cast<void>(member.space.put(key, bytes_of(value)).outcome(kPatienceNs));
    auto lock = member.space.lock(key);
    parent.send_line(lock.outcome(kPatienceNs).ok() ? "locked" : lock.describe());
    run(member.space);
    return 0;
  });
  Process waiter = start(2, [](SpaceMember& member, Parent& parent) {
    const Key key{std::stoull(parent.receive_line())};
    parent.send_line(
        std::string(remote::describe(member.space.try_lock(key).outcome(kPatienceNs).status)));
    auto lock = member.space.lock(key);
    parent.send_line("waiting");
    const Outcome outcome = lock.outcome(kPatienceNs);
    parent.send_line(outcome.ok() && outcome.recovered ? "recovered" : lock.describe());
    std::uint64_t value = 0;
    auto get = member.space.get(key, bytes_of(value));
    parent.send_line(get.outcome(kPatienceNs).ok() ? std::to_string(value) : get.describe());
    return 0;
  });
  // The waiter cannot poll while it listens to us, so everything it needs is said at once.
  const std::string key = holder.receive_line();
  EXPECT_EQ(holder.receive_line(), "locked");
  waiter.send_line(key);
  EXPECT_EQ(waiter.receive_line(), "another has the lock or waits for it");
  EXPECT_EQ(waiter.receive_line(), "waiting");
  holder.kill();
  EXPECT_EQ(waiter.receive_line(), "recovered");
  EXPECT_EQ(waiter.receive_line(), "7");
}

TEST_P(SegmentDeath, SegmentsOfAKilledMemberAreLostAndTheOthersGoOn) {
  Process home = start_serving(0);
  Process other = start_serving(1);
  Process user = start(2, [](SpaceMember& member, Parent& parent) {
    const Key gone = make(member, parent, 0), stays = make(member, parent, 1);
    std::uint64_t value = 5;
    Status status = Status::ok;
    while (status == Status::ok)
      status = member.space.put(gone, bytes_of(value)).outcome(kPatienceNs).status;
    parent.send_line(std::string(remote::describe(status)));
    parent.send_line(member.space.lost() == std::vector<Key>{gone} ? "listed" : "not listed");
    auto put = member.space.put(stays, bytes_of(value));
    parent.send_line(put.outcome(kPatienceNs).ok() ? "goes on" : put.describe());
    return 0;
  });
  EXPECT_NE(user.receive_line(), "");
  EXPECT_NE(user.receive_line(), "");
  home.kill();
  EXPECT_EQ(user.receive_line(), "lost: the member that holds it has failed or left");
  EXPECT_EQ(user.receive_line(), "listed");
  EXPECT_EQ(user.receive_line(), "goes on");
}

}  // namespace
}  // namespace dunlin

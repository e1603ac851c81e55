#include <csignal>
#include <string>

#include "fabric/shm_group.hpp"
#include "support/process.hpp"

/// What can a peer still do that was expelled? Either it says that it does nothing, or it is
/// killed.
namespace dunlin {
namespace {

using test::fresh_group;
using test::Member;
using test::Parent;
using test::poll_politely;
using test::Process;

struct ShmFence : testing::Test {
  JoinOptions as(Rank rank) const {
    return {.group = group, .members = 2, .rank = rank, .silence_timeout_ms = 0};
  }
  static Fenced fence_off(Fabric& fabric, Rank peer) {
    for (;;) {
      const Fenced fenced = fabric.fence(peer);
      if (fenced != Fenced::not_yet) return fenced;
      poll_politely(fabric);
    }
  }
  std::string group = fresh_group();
};

/// Polls until it is given up, and then lives on.
int part_and_live_on(Member& member, Parent& parent) {
  while (!member.fabric->failed(0)) poll_politely(*member.fabric);
  parent.send_line("given up");
  return parent.receive_line() == "end" ? 0 : 1;
}

TEST_F(ShmFence, AMemberThatLeavesPartsAndLivesOn) {
  Process leaver([this](Parent& parent) {
    Member member(as(1));
    return part_and_live_on(member, parent);
  });
  Member member(as(0));
  EXPECT_EQ(member.fabric->fence(1), Fenced::not_yet) << "it has not failed";
  member.fabric->expel(1, "it has left", Parting::left);
  EXPECT_EQ(fence_off(*member.fabric, 1), Fenced::yes);
  EXPECT_EQ(leaver.receive_line(), "given up");
  leaver.send_line("end");
  EXPECT_EQ(leaver.exit_code(), 0);
}

TEST_F(ShmFence, AMemberThatIsStoppedIsKilledAndSeenToEnd) {
  Process stopped([this](Parent& parent) {
    Member member(as(1));
    parent.send_line("here");
    return part_and_live_on(member, parent);
  });
  Member member(as(0));
  ASSERT_EQ(stopped.receive_line(), "here");
  stopped.signal(SIGSTOP);
  member.fabric->expel(1, "it is silent");
  EXPECT_EQ(fence_off(*member.fabric, 1), Fenced::yes);
  EXPECT_EQ(stopped.exit_code(), -SIGKILL);
}

TEST_F(ShmFence, AFabricThatIsDestroyedAfterItsExpulsionParts) {
  Process leaver([this](Parent& parent) {
    {
      const Member member(as(1));
      parent.send_line("here");
      static_cast<void>(parent.receive_line());  // and so it never polls again
    }
    parent.send_line("destroyed");
    return parent.receive_line() == "end" ? 0 : 1;
  });
  Member member(as(0));
  ASSERT_EQ(leaver.receive_line(), "here");
  member.fabric->expel(1, "it has left", Parting::left);
  EXPECT_EQ(member.fabric->fence(1), Fenced::not_yet);
  leaver.send_line("destroy it");
  EXPECT_EQ(fence_off(*member.fabric, 1), Fenced::yes);
  EXPECT_EQ(leaver.receive_line(), "destroyed");
  leaver.send_line("end");
  EXPECT_EQ(leaver.exit_code(), 0);
}

}  // namespace
}  // namespace dunlin

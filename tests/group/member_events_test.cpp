#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "group/sim_groups.hpp"

/// What a group tells people about its members (Group::on_member).
namespace dunlin {
namespace {

using test::SimGroups;
using Kind = MemberEvent::Kind;

struct Told {
  explicit Told(Group& group) {
    group.on_member([this](const MemberEvent& event) { events.push_back(event); });
  }
  [[nodiscard]] std::string text() const {
    constexpr const char* kWords[] = {"suspected", "removed", "killed", "joined", "left", "ended"};
    std::string text;
    for (const MemberEvent& event : events)
      text += std::string(kWords[static_cast<int>(event.kind)]) + " " + event.member + " in " +
              std::to_string(event.view) + "\n";
    return text;
  }
  std::vector<MemberEvent> events;
};

TEST(MemberEvents, TellOfAMemberThatCrashedOnceItIsSuspectedAndOnceItIsRemoved) {
  SimGroups groups(3);
  const Told told(*groups[0].group);
  ASSERT_TRUE(groups.run_until_view_of({0, 1, 2}));
  EXPECT_EQ(told.text(), "joined node0 in 1\n");
  groups.world.crash(2);
  ASSERT_TRUE(groups.run_until_view_of({0, 1}));
  EXPECT_EQ(told.text(), "joined node0 in 1\nsuspected node2 in 1\nremoved node2 in 2\n");
  EXPECT_NE(told.events[1].why.find("failed"), std::string::npos) << told.events[1].why;
  EXPECT_EQ(told.events[2].why, told.events[1].why);
  EXPECT_GT(told.events[2].after_ns, 0U);
}

TEST(MemberEvents, SayForHowLongASuspectWasSilent) {
  SimGroups groups(3);
  const Told told(*groups[0].group);
  ASSERT_TRUE(groups.run_until_view_of({0, 1, 2}));
  groups.world.pause(2, test::kLongNs);
  ASSERT_TRUE(groups.run_until_view_of({0, 1}));
  ASSERT_EQ(told.events.size(), 3U) << told.text();
  const auto silence_ns = static_cast<std::uint64_t>(sim::profile("ib100").silence_timeout_ns);
  EXPECT_EQ(told.events[1].after_ns, silence_ns);
  EXPECT_NE(told.events[1].why.find("nothing was heard"), std::string::npos);
}

TEST(MemberEvents, TellALeaveFromADeath) {
  SimGroups groups(3);
  const Told stays(*groups[0].group);
  const Told goes(*groups[1].group);
  ASSERT_TRUE(groups.run_until_view_of({0, 1, 2}));
  groups.world.on(1, [&] { groups[1].group->leave(); });
  ASSERT_TRUE(groups.run_until_ended(1));
  ASSERT_TRUE(groups.run_until_view_of({0, 2}));
  EXPECT_EQ(stays.text(), "joined node0 in 1\nleft node1 in 2\n");
  EXPECT_EQ(goes.text(), "joined node1 in 1\nended node1 in 1\n");
  EXPECT_EQ(goes.events[1].why, groups[1].group->why_ended());
}

/// Neither of those that are told noticed that it had failed: the leader heard of it, and the other
/// one sees that the leader takes it for failed.
TEST(MemberEvents, SayThatAnotherMemberCannotReachIt) {
  SimGroups groups(4);
  const Told leads(*groups[0].group);
  const Told follows(*groups[3].group);
  ASSERT_TRUE(groups.run_until_view_of({0, 1, 2, 3}));
  groups.world.cut(1, 2);
  ASSERT_TRUE(groups.run_until_view_of({0, 1, 3}));
  EXPECT_EQ(leads.text(), "joined node0 in 1\nremoved node2 in 2\n");
  EXPECT_EQ(follows.text(), "joined node3 in 1\nremoved node2 in 2\n");
  EXPECT_NE(leads.events[1].why.find("another member cannot reach it"), std::string::npos)
      << leads.events[1].why;
}

}  // namespace
}  // namespace dunlin

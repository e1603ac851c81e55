#include <csignal>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/group.hpp>
#include <dunlin/run.hpp>

#include "support/fresh_group.hpp"
#include "support/node_backend.hpp"
#include "support/process.hpp"
#include "support/rounds.hpp"

/// Groups of real processes that are killed, stopped, or leave.
namespace dunlin {
namespace {

using test::fresh_group;
using test::kPatienceMs;
using test::Parent;
using test::Process;

std::string text_of(const View& view) {
  std::string text = "view " + std::to_string(view.number) + ":";
  for (const std::string& member : view.members) text += " " + member;
  return text;
}

struct GroupOfProcesses : test::OnProcesses {
  /// Tells its views, and why it has ended. A leaver leaves at once.
  [[nodiscard]] Process member(Rank rank, bool leaves = false) const {
    return Process([=, this](Parent& parent) {
      const auto fabric = join(rank);
      Group group(*fabric);
      group.on_view([&](const View& view) {
        parent.send_line(text_of(view));
        if (leaves) group.leave();
      });
      try {
        if (!run_until(
                group, [&] { return group.ended(); }, kPatienceMs)) {
          std::cerr << group.describe();
          return 1;
        }
        parent.send_line("ended: " + group.why_ended());
      } catch (const Error& error) {
        parent.send_line(std::string("ended: ") + error.what());
      }
      return 0;
    });
  }
  [[nodiscard]] std::vector<Process> all_in_view_1() const {
    std::vector<Process> all;
    for (Rank rank = 0; rank < members; ++rank) all.push_back(member(rank));
    for (Process& process : all) EXPECT_EQ(process.receive_line(), "view 1: 0 1 2");
    return all;
  }
};

DUNLIN_RUN_ON(test::backends(), GroupOfProcesses);

TEST_P(GroupOfProcesses, GoesOnWithoutAMemberThatIsKilled) {
  const std::vector<std::string> views{"view 2: 1 2", "view 2: 0 2", "view 2: 0 1"};
  for (Rank dead = 0; dead < members; ++dead) {
    name = fresh_group();
    std::vector<Process> all = all_in_view_1();
    all[dead].kill();
    for (const Rank rank : {(dead + 1) % members, (dead + 2) % members})
      EXPECT_EQ(all[rank].receive_line(), views[dead]);
  }
}

/// More than a word has bits: the leader dies, and one of the second word.
TEST_P(GroupOfProcesses, GoesOnWithoutTwoOfMany) {
  const bool few = test::kSanitized || GetParam().name == "Rdma";
  members = few ? 8 : 70;
  std::vector<Process> all;
  for (Rank rank = 0; rank < members; ++rank) all.push_back(member(rank));
  std::string view_1 = "view 1:", rest;
  for (Rank rank = 0; rank < members; ++rank) {
    view_1 += " " + std::to_string(rank);
    if (rank != 0 && rank != members - 3) rest += " " + std::to_string(rank);
  }
  for (Process& process : all) ASSERT_EQ(process.receive_line(), view_1);
  for (const Rank dead : {members - 3, 0U}) all[dead].kill();
  for (Rank rank = 1; rank < members; ++rank) {
    if (rank == members - 3) continue;
    std::string view = all[rank].receive_line();
    if (view != "view 2:" + rest) view = all[rank].receive_line();  // they went one by one
    ASSERT_TRUE(view.ends_with(":" + rest)) << view;
  }
}

TEST_P(GroupOfProcesses, StopsWhereAMinorityIsLeft) {
  std::vector<Process> all = all_in_view_1();
  all[0].signal(SIGSTOP);  // or it could still agree with rank 2 on a view of two
  all[1].kill();
  all[0].kill();
  EXPECT_NE(all[2].receive_line().find("too few members of view 1 are left"), std::string::npos);
  EXPECT_EQ(all[2].exit_code(), 0);
}

TEST_P(GroupOfProcesses, TellsAMemberThatWasStoppedThatItIsOut) {
  silence_timeout_ms = GetParam().silence_ms;
  std::vector<Process> all = all_in_view_1();
  all[1].signal(SIGSTOP);
  EXPECT_EQ(all[0].receive_line(), "view 2: 0 2");
  EXPECT_EQ(all[2].receive_line(), "view 2: 0 2");
  all[1].signal(SIGCONT);
  EXPECT_TRUE(all[1].receive_line().starts_with("ended: group"));
  EXPECT_EQ(all[1].exit_code(), 0);
}

TEST_P(GroupOfProcesses, LetsAMemberGo) {
  std::vector<Process> all;
  for (Rank rank = 0; rank < members; ++rank) all.push_back(member(rank, rank == 0));
  for (Process& process : all) EXPECT_EQ(process.receive_line(), "view 1: 0 1 2");
  EXPECT_NE(all[0].receive_line().find("it has left the group"), std::string::npos);
  EXPECT_EQ(all[0].exit_code(), 0);
  EXPECT_EQ(all[1].receive_line(), "view 2: 1 2");
  EXPECT_EQ(all[2].receive_line(), "view 2: 1 2");
}

}  // namespace
}  // namespace dunlin

#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/group.hpp>

#include "support/fresh_group.hpp"
#include "support/node_backend.hpp"
#include "support/process.hpp"
#include "support/rounds.hpp"

/// Real processes: the leader, or the process that joins, is killed at each step that the leader
/// makes while it lets a process in. A step is a poll that finds something to do.
namespace dunlin {
namespace {

using test::fresh_group;
using test::kPatienceMs;
using test::Parent;
using test::Process;

constexpr std::uint32_t kFounders = 3;
constexpr std::uint32_t kNodes = kFounders + 1;
constexpr std::uint64_t kNever = UINT64_MAX;
constexpr std::uint64_t kMostSteps = 1'000;  // more than any admission has

void tell_views(Parent& parent, Group& group) {
  group.on_view([&parent](const View& view) {
    std::string text = "view:";
    for (const std::string& member : view.members) text += " " + member;
    parent.send_line(text);
  });
}

/// Polls for ever. At that step after the first view it tells its parent, and waits for a word.
[[noreturn]] void live(Parent& parent, Group& group, std::uint64_t pause_at) {
  for (std::uint64_t steps = 0;;) {
    const bool counts = group.view().number > 0;
    if (group.poll() == 0)
      std::this_thread::yield();
    else if (counts && ++steps == pause_at) {
      parent.send_line("step");
      static_cast<void>(parent.receive_line());
    }
  }
}

struct KilledJoins : test::OnBackends {
  [[nodiscard]] static GroupOptions options(const std::string& name, Rank rank) {
    return {.rendezvous = GetParam().rendezvous({.group = name, .nodes = kNodes, .rank = rank})};
  }
  [[nodiscard]] static Process founder(const std::string& name, Rank rank, std::uint64_t pause_at) {
    return Process([=](Parent& parent) -> int {
      const auto fabric = GetParam().join({.group = name, .nodes = kFounders, .rank = rank});
      Group group(*fabric, options(name, rank));
      tell_views(parent, group);
      live(parent, group, pause_at);
    });
  }
  [[nodiscard]] static Process comer(const std::string& name, const std::string& as) {
    return Process([=](Parent& parent) -> int {
      const auto group = Group::join(as, options(name, kNodes - 1), kPatienceMs);
      tell_views(parent, *group);
      live(parent, *group, kNever);
    });
  }
  /// Whether the process says so, among other views.
  static void expect_view(Process& process, const std::string& view, std::uint64_t step) {
    std::string line;
    do line = process.receive_line();
    while (line.starts_with("view:") && line != view);
    EXPECT_EQ(line, view) << "after a kill at step " << step;
  }
};

/// A group of three whose leader stops at a step of an admission.
struct Admission {
  Admission(const std::string& name, std::uint64_t pause_at) {
    for (Rank rank = 0; rank < kFounders; ++rank)
      founders.push_back(KilledJoins::founder(name, rank, rank == 0 ? pause_at : kNever));
    for (Process& process : founders) EXPECT_EQ(process.receive_line(), "view: 0 1 2");
    joiner = std::make_unique<Process>(KilledJoins::comer(name, "late"));
    const std::string line = founders[0].receive_line();
    stopped = line == "step";
    EXPECT_TRUE(stopped || line == "view: 0 1 2 late") << line;
  }
  std::vector<Process> founders;
  std::unique_ptr<Process> joiner;
  bool stopped = false;  // else the admission has fewer steps
};

/// Each in a release build, some of them under a sanitizer.
std::uint64_t next_step(std::uint64_t step) { return step + kMostSteps / test::rounds(kMostSteps); }

DUNLIN_RUN_ON(test::backends(), KilledJoins);

TEST_P(KilledJoins, OutlastTheLeaderAtEachStep) {
  std::uint64_t step = 1;
  for (;; step = next_step(step)) {
    ASSERT_LT(step, kMostSteps);
    Admission admission(fresh_group(), step);
    if (!admission.stopped) break;
    admission.founders[0].kill();
    for (Process* const process :
         {&admission.founders[1], &admission.founders[2], admission.joiner.get()})
      expect_view(*process, "view: 1 2 late", step);
    if (HasFailure()) return;
  }
  EXPECT_GT(step, 4U) << "the leader has hardly stopped";
}

TEST_P(KilledJoins, LeaveTheGroupAsItIsIfTheJoinerDiesAtEachStep) {
  std::uint64_t step = 1;
  for (;; step = next_step(step)) {
    ASSERT_LT(step, kMostSteps);
    const std::string name = fresh_group();
    Admission admission(name, step);
    if (!admission.stopped) break;
    admission.joiner->kill();
    admission.founders[0].send_line("go on");
    Process next = comer(name, "next");
    for (Process& process : admission.founders) expect_view(process, "view: 0 1 2 next", step);
    expect_view(next, "view: 0 1 2 next", step);
    if (HasFailure()) return;
  }
  EXPECT_GT(step, 4U) << "the leader has hardly stopped";
}

}  // namespace
}  // namespace dunlin

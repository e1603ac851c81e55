#include <array>
#include <csignal>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include <dunlin/run.hpp>
#include <dunlin/segment.hpp>

#include "segment/spaces.hpp"

/// A real process that is stopped in the middle of its puts under a lock, and goes on after the
/// others have gone on without it.
namespace dunlin {
namespace {

using test::Parent;
using test::Process;
using test::SpaceMember;

constexpr std::uint64_t kFencePatienceNs = std::uint64_t{test::kPatienceMs} * 1'000'000;
constexpr std::uint64_t kLast = UINT64_MAX;  // put by the next holder
constexpr Rank kHome = 0, kHolder = 1, kNext = 2;

struct SegmentFence : test::OnSpacesOfProcesses {};
DUNLIN_RUN_ON(test::backends(), SegmentFence);

/// Puts under its lock until it cannot any more.
int put_for_ever(SpaceMember& member, Parent& parent) {
  auto made = member.space.allocate({.bytes = 4096, .placement = Placement::on(kHome)});
  const Key key = made.outcome(kFencePatienceNs).key;
  if (!member.space.lock(key).outcome(kFencePatienceNs).ok()) return 1;
  parent.send_line(std::to_string(key.value));
  std::array<std::uint64_t, 512> words{};
  for (std::uint64_t i = 1;; ++i) {
    words.fill(i);
    if (!member.space.put(key, bytes_of(words)).outcome(kFencePatienceNs).ok()) return 0;
  }
}

/// REM-13 has the lock wait until the holder can change nothing more.
TEST_P(SegmentFence, AHolderThatWakesUpLaterChangesNothing) {
  const Process home = start_serving(kHome);
  Process holder = start(kHolder, put_for_ever);
  Process next = start(kNext, [](SpaceMember& member, Parent& parent) {
    const Key key{std::stoull(parent.receive_line())};
    member.fabric->expel(kHolder, "the test says so");
    auto lock = member.space.lock(key);
    parent.send_line(lock.outcome(kFencePatienceNs).recovered ? "recovered" : lock.describe());
    std::array<std::uint64_t, 512> words{};
    words.fill(kLast);
    auto put = member.space.put(key, bytes_of(words));
    parent.send_line(put.outcome(kFencePatienceNs).ok() ? "put" : put.describe());
    static_cast<void>(parent.receive_line());  // the holder has ended
    auto get = member.space.get(key, bytes_of(words));
    if (!get.outcome(kFencePatienceNs).ok()) parent.send_line(get.describe());
    for (const std::uint64_t word : words)
      if (word != kLast) parent.send_line("changed to " + std::to_string(word));
    parent.send_line("looked");
    return 0;
  });
  const std::string key = holder.receive_line();
  holder.signal(SIGSTOP);
  next.send_line(key);
  EXPECT_EQ(next.receive_line(), "recovered");
  EXPECT_EQ(next.receive_line(), "put");
  holder.signal(SIGCONT);
  const int end = holder.exit_code();
  EXPECT_EQ(end, GetParam().name == "Shm" ? -SIGKILL : 0);
  next.send_line("go");
  EXPECT_EQ(next.receive_line(), "looked");
}

/// Holds a lock, leaves its group, and lives on until it is told to end.
TEST_P(SegmentFence, AMemberThatLeavesGivesItsLockAndLivesOn) {
  const Process home = start_serving(kHome);
  Process leaver = start(kHolder, [](SpaceMember& member, Parent& parent) {
    auto made = member.space.allocate({.bytes = 64, .placement = Placement::on(kHome)});
    const Key key = made.outcome(kFencePatienceNs).key;
    if (!member.space.lock(key).outcome(kFencePatienceNs).ok()) return 1;
    parent.send_line(std::to_string(key.value));
    static_cast<void>(parent.receive_line());
    member.member.group.leave();
    if (!run_until(
            member.member.group, [&] { return member.member.group.ended(); }, test::kPatienceMs))
      return 2;
    parent.send_line("left");
    return parent.receive_line() == "end" ? 0 : 3;
  });
  Process next = start(kNext, [](SpaceMember& member, Parent& parent) {
    const Key key{std::stoull(parent.receive_line())};
    auto lock = member.space.lock(key);
    parent.send_line(lock.outcome(kFencePatienceNs).ok() ? "locked" : lock.describe());
    return 0;
  });
  next.send_line(leaver.receive_line());
  leaver.send_line("leave");
  EXPECT_EQ(leaver.receive_line(), "left");
  EXPECT_EQ(next.receive_line(), "locked");
  leaver.send_line("end");
  EXPECT_EQ(leaver.exit_code(), 0);
}

}  // namespace
}  // namespace dunlin

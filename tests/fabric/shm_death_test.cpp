#include <array>
#include <chrono>
#include <csignal>
#include <random>

#include <sched.h>

#include "fabric/shm/peer_discovery.hpp"
#include "fabric/shm/shm_backend.hpp"
#include "fabric/shm_group.hpp"
#include "support/private_shm.hpp"
#include "support/process.hpp"

namespace dunlin {
namespace {

using std::chrono::steady_clock;
using test::contains;
using test::fresh_group;
using test::Member;
using test::Parent;
using test::poll_politely;
using test::Process;

void poll_until_failed(Member& member, std::size_t peers) {
  while (member.failures.size() < peers) poll_politely(*member.fabric);
}

Process box_member(const JoinOptions& options) {
  return Process([options](Parent& parent) {
    Member member(options);
    parent.send_line("in");
    while (member.failures.empty()) poll_politely(*member.fabric);
    parent.send_line(member.failure_text);
    static_cast<void>(parent.receive_line());  // may leave
    return 0;
  });
}

TEST(ShmDeath, SurvivorsLearnOfAKilledMemberExactlyOnce) {
  const std::string group = fresh_group();
  Process victim = box_member({.group = group, .members = 3, .rank = 1});
  Process other = box_member({.group = group, .members = 3, .rank = 2});
  Member member({.group = group, .members = 3, .rank = 0});
  EXPECT_EQ(victim.receive_line(), "in");
  EXPECT_EQ(other.receive_line(), "in");
  victim.kill();
  poll_until_failed(member, 1);
  EXPECT_EQ(member.failures, std::vector<Rank>{1});
  EXPECT_TRUE(contains(member.failure_text, "pid " + std::to_string(victim.pid())));
  EXPECT_TRUE(contains(other.receive_line(), "rank 1"));
  other.send_line("leave");
  EXPECT_EQ(other.exit_code(), 0);
  poll_until_failed(member, 2);
  for (int i = 0; i < 100'000; ++i) member.fabric->poll();
  EXPECT_EQ(member.failures, (std::vector<Rank>{1, 2}));
  EXPECT_TRUE(contains(member.failure_text, "left the group"));
}

TEST(ShmDeath, OperationsToAFailedMemberCompleteWithAnError) {
  const std::string group = fresh_group();
  Process victim = box_member({.group = group, .members = 2, .rank = 1});
  Member member({.group = group, .members = 2, .rank = 0});
  victim.kill();
  std::uint64_t value = 7;
  Completion early;  // before anyone has noticed, the memory is still there
  EXPECT_TRUE(member.fabric->post(write(1, member.box.id(), 0, &value, 8).notify(early)).all());
  EXPECT_TRUE(early.finished());
  poll_until_failed(member, 1);
  EXPECT_FALSE(member.fabric->connected(1, member.box.id()));
  Completion late;
  const std::array<Operation, 2> batch{write(1, member.box.id(), 0, &value, 8).notify(late),
                                       read(1, member.box.id(), 0, &value, 8).notify(late)};
  EXPECT_TRUE(member.fabric->post(batch).all());
  EXPECT_TRUE(late.finished());
  EXPECT_EQ(late.failures(), 2u);
  EXPECT_EQ(late.failed_peer(), 1u);
  EXPECT_EQ(member.fabric->send(1, 0, {}), Refusal::none);
}

TEST(ShmDeath, WhatADeadMemberWroteStaysReadable) {
  const std::string group = fresh_group();
  Process victim([&](Parent& parent) {
    Member member({.group = group, .members = 2, .rank = 1});
    member.write_word(0, 5, 42);
    parent.send_line("written");
    static_cast<void>(parent.receive_line());
    return 0;
  });
  Member member({.group = group, .members = 2, .rank = 0});
  EXPECT_EQ(victim.receive_line(), "written");
  victim.kill();
  poll_until_failed(member, 1);
  EXPECT_EQ(member.word(5), 42u);
}

TEST(ShmDeath, AStoppedMemberFailsBySilenceAndLearnsItWhenItComesBack) {
  const std::string group = fresh_group();
  Process victim = box_member(
      {.group = group, .members = 2, .rank = 1, .silence_timeout_ms = 0});  // blames nobody itself
  Member member({.group = group, .members = 2, .rank = 0, .silence_timeout_ms = 100});
  EXPECT_EQ(victim.receive_line(), "in");
  victim.signal(SIGSTOP);
  poll_until_failed(member, 1);
  EXPECT_TRUE(contains(member.failure_text, "no sign of life for 100 ms"));
  victim.signal(SIGCONT);
  EXPECT_TRUE(contains(victim.receive_line(), "rank 0"));
  victim.send_line("leave");
  EXPECT_EQ(victim.exit_code(), 0);
}

TEST(ShmDeath, WithoutATimeoutAStoppedMemberIsWaitedFor) {
  const std::string group = fresh_group();
  Process victim = box_member({.group = group, .members = 2, .rank = 1});
  Member member({.group = group, .members = 2, .rank = 0, .silence_timeout_ms = 0});
  EXPECT_EQ(victim.receive_line(), "in");
  victim.signal(SIGSTOP);
  for (int i = 0; i < 1'000'000; ++i) member.fabric->poll();
  EXPECT_TRUE(member.failures.empty());
  victim.signal(SIGCONT);
}

/// Its peers would take it for silent if it went on to skip looks as fast polls may.
TEST(ShmDeath, SlowPollsAfterABurstBeatTheHeart) {
  const auto fabric = join({.group = fresh_group(), .members = 1});
  for (int burst = 0; burst < 10; ++burst) {
    for (int i = 0; i < 100'000; ++i) fabric->poll();
    const std::uint64_t later_ns = fabric->now_ns() + 2'000'000;
    while (fabric->now_ns() < later_ns) {  // computes something
    }
    for (int i = 0; i < 4; ++i) fabric->poll();
    ASSERT_GE(fabric->recent_ns(), later_ns);
  }
}

TEST(ShmDeath, ASleepingMemberIsNotSilentAndWakesWhenAPeerDies) {
  const std::string group = fresh_group();
  Process sleeper([&](Parent& parent) {
    Member member({.group = group, .members = 2, .rank = 1, .silence_timeout_ms = 0});
    for (int wakes = 0; member.failures.empty(); ++wakes) {
      if (wakes == 6) static_cast<void>(member.fabric->send(0, 0, {}));  // over a timeout has gone
      member.fabric->prepare_sleep();
      member.fabric->poll() == 0 ? member.fabric->sleep(UINT64_MAX) : member.fabric->cancel_sleep();
    }
    parent.send_line(member.failure_text);
    return 0;
  });
  {
    Member member({.group = group, .members = 2, .rank = 0, .silence_timeout_ms = 1000});
    bool slept = false;
    member.fabric->receive(0, [&](Rank, std::span<const std::byte>) { slept = true; });
    while (!slept && member.failures.empty()) poll_politely(*member.fabric);
    EXPECT_TRUE(member.failures.empty()) << member.failure_text;
  }
  EXPECT_TRUE(contains(sleeper.receive_line(), "left the group"));
}

/// Joins, writes, sends, allocates and releases until it is killed.
Process busy_member(const std::string& group, std::uint32_t members, Rank rank) {
  return Process([=](Parent&) {
    Member member({.group = group, .members = members, .rank = rank, .timeout_ms = 60'000});
    for (std::uint64_t i = 0;; ++i) {
      member.write_word(static_cast<Rank>(i % members), i % 512, i);
      static_cast<void>(member.fabric->send(static_cast<Rank>(i % members), 0, {}));
      if (i % 16 == 0) {
        const Region region = member.fabric->allocate({.name = "brief", .bytes = 4096});
        member.fabric->announce(region);
      }
      member.fabric->poll();
    }
    return 0;
  });
}

/// One life of a group: all members are killed, each at a moment of its own. Then the same group
/// must start at once.
void kill_at_random_moments(const std::string& group, std::mt19937_64& random) {
  constexpr std::uint32_t kMembers = 3;
  std::vector<Process> members;
  for (Rank rank = 0; rank < kMembers; ++rank)
    members.push_back(busy_member(group, kMembers, rank));
  const auto let_pass_up_to = [&](std::uint64_t us) {
    const auto end = steady_clock::now() + std::chrono::microseconds(random() % us);
    while (steady_clock::now() < end) sched_yield();
  };
  let_pass_up_to(20'000);
  for (Process& member : members) {
    let_pass_up_to(1'000);
    member.kill();
  }
}

TEST(ShmDeath, AnyMomentOfDeathLeavesNothingBehind) {
  Process world([](Parent& parent) {
    const auto why_not = test::mount_private_shm(256 << 20);
    const std::uint64_t free_before = test::free_shm_bytes();
    const std::string names_before = test::list_shm();
    const std::string group = fresh_group();
    std::mt19937_64 random(2);
    for (int life = 0; life < 60; ++life) kill_at_random_moments(group, random);
    {
      Process second = box_member({.group = group, .members = 2, .timeout_ms = 60'000});
      Member first({.group = group, .members = 2, .timeout_ms = 60'000});
      if (second.receive_line() != "in") parent.send_line("the group did not start again");
    }
    if (test::list_shm() != names_before) parent.send_line("there are new names in /dev/shm");
    // Elsewhere, others may use /dev/shm at the same time.
    if (!why_not && test::free_shm_bytes() != free_before) parent.send_line("memory is lost");
    return 0;
  });
  EXPECT_EQ(world.receive_all_lines(), "");
  EXPECT_EQ(world.exit_code(), 0);
}

TEST(ShmDeath, AGroupCanStartWhileTheKilledOneIsStillDying) {
  const std::string group = fresh_group();
  for (int life = 0; life < 10; ++life) {
    Process victim = box_member({.group = group, .members = 2, .timeout_ms = 60'000});
    {
      Member member({.group = group, .members = 2, .timeout_ms = 60'000});
      victim.signal(SIGKILL);  // and not waited for
    }
    Process next = box_member({.group = group, .members = 2, .timeout_ms = 60'000});
    Member member({.group = group, .members = 2, .timeout_ms = 60'000});
    EXPECT_EQ(next.receive_line(), "in");
  }
}

TEST(ShmDeath, AFullSharedMemoryIsAnErrorWithANumber) {
  Process world([](Parent& parent) {
    if (const auto why_not = test::mount_private_shm(1 << 20)) {
      parent.send_line("skip " + *why_not);
      return 0;
    }
    const auto fabric = join({.group = fresh_group(), .members = 1});
    parent.send_line(test::what_is_thrown_by(
        [&] { const Region region = fabric->allocate({.name = "big", .bytes = 4 << 20}); }));
    const Region small = fabric->allocate({.name = "small", .bytes = 4096});
    parent.send_line("small fits");
    return 0;
  });
  const std::string text = world.receive_line();
  if (text.starts_with("skip")) GTEST_SKIP() << text;
  EXPECT_TRUE(contains(text, "region 'big'"));
  EXPECT_TRUE(contains(text, std::to_string((4 << 20) + 4096) + " bytes are needed"));
  EXPECT_TRUE(contains(text, " are free in /dev/shm"));
  EXPECT_EQ(world.receive_line(), "small fits");
}

/// It shows no sign of life either, and has no memory in which to look for one.
TEST(ShmDeath, OfAMemberWhileTheGroupFormsIsToldByTheFirstPoll) {
  const std::string group = fresh_group();
  shm::PeerDiscovery one({.group = group, .members = 2, .rank = 0});
  shm::PeerDiscovery other({.group = group, .members = 2, .rank = 1});
  std::optional<shm::Attachment> mine;
  std::optional<shm::Attachment> theirs;
  while (!mine || !theirs) {
    if (!mine) mine = one.poll();
    if (!theirs) theirs = other.poll();
  }
  mine->links[1] = {};
  const auto fabric = shm::make_shm_fabric(std::move(*mine));
  fabric->prepare_sleep();
  fabric->cancel_sleep();  // so that the next poll looks at everything
  fabric->poll();
  EXPECT_TRUE(fabric->failed(1));
  EXPECT_NE(fabric->failure_text(1).find("while the group was forming"), std::string::npos)
      << fabric->failure_text(1);
}

}  // namespace
}  // namespace dunlin

#include <array>
#include <csignal>
#include <cstddef>
#include <functional>
#include <vector>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fabric/shm/membarrier.hpp"
#include "fabric/shm_group.hpp"
#include "support/process.hpp"

namespace dunlin {
namespace {

using test::fresh_group;
using test::Member;
using test::Parent;
using test::poll_politely;
using test::Process;
using test::run_members;

/// Sleeps whenever there is nothing to do, until the condition holds.
template <class Condition>
void sleep_until(Member& member, Condition condition) {
  while (!condition()) {
    member.fabric->prepare_sleep();
    const std::size_t handled = member.fabric->poll();
    if (handled == 0 && !condition())
      member.fabric->sleep(UINT64_MAX);
    else
      member.fabric->cancel_sleep();
  }
}

/// Two members that hand a count to and fro, and sleep while it is the other's turn. A lost wake-up
/// would show: without silence time-outs, nothing else ever wakes them.
void hand_to_and_fro(Member& member, std::uint64_t rounds) {
  const Rank me = member.fabric->rank(), other = 1 - me;
  for (std::uint64_t round = me; round < rounds; round += 2) {
    sleep_until(member, [&] { return member.word(0) == round; });
    member.write_word(other, 0, round + 1);
  }
}

TEST(ShmWaiting, ASleeperIsWokenByAWrite) {
  const std::string group = fresh_group();
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      Member member({.group = group, .members = 2, .rank = rank, .silence_timeout_ms = 0});
      hand_to_and_fro(member, 4'000);
    });
  for (std::thread& thread : threads) thread.join();
}

/// The kernel refuses membarrier() to this process from now on.
bool forbid_barriers() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{4, rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

Process handing_process(const std::string& group, bool barriers) {
  return Process([=](Parent& parent) {
    if (!barriers && (!forbid_barriers() || shm::register_for_barriers())) {
      parent.send_line("skip: membarrier() cannot be forbidden here");
      return 0;
    }
    Member member({.group = group, .members = 2, .timeout_ms = 60'000, .silence_timeout_ms = 0});
    parent.send_line("in");
    hand_to_and_fro(member, 4'000);
    return 0;
  });
}

/// Each side may or may not have barriers on all processors; either way no wake-up is lost.
void expect_no_lost_wakeup(bool first_has_barriers, bool second_has_barriers) {
  const std::string group = fresh_group();
  Process first = handing_process(group, first_has_barriers);
  Process second = handing_process(group, second_has_barriers);
  for (Process* process : {&first, &second}) {
    const std::string text = process->receive_line();
    if (text.starts_with("skip")) GTEST_SKIP() << text;
    EXPECT_EQ(text, "in");
  }
  EXPECT_EQ(first.exit_code(), 0);
  EXPECT_EQ(second.exit_code(), 0);
}

/// No wake-up is lost, because the sleeper keeps to SHM-W1 and the writer to SHM-W2.
TEST(ShmWaiting, ASleepingProcessIsWokenByAWrite) { expect_no_lost_wakeup(true, true); }
/// SHM-W3 demands a fence of the writer if either side has no barrier.
TEST(ShmWaiting, WithoutBarriersTheWritersFence) { expect_no_lost_wakeup(false, false); }
TEST(ShmWaiting, OneWithoutBarriersIsEnoughToFence) { expect_no_lost_wakeup(true, false); }

TEST(ShmWaiting, ASleeperIsWokenByAMessageAPutAndAnAtomic) {
  run_members(2, [](Member& member) {
    const Fabric& fabric = *member.fabric;
    const Rank other = 1 - fabric.rank();
    bool called = false;
    member.fabric->receive(7, [&](Rank, std::span<const std::byte>) { called = true; });
    const std::uint64_t value = 9;
    const auto signal = [&](const Operation& operation) {
      EXPECT_TRUE(member.fabric->post(operation).all());
    };
    if (fabric.rank() == 0) {
      EXPECT_EQ(member.fabric->send(other, 7, {}), Refusal::none);
      sleep_until(member, [&] { return called; });
      const std::array<Operation, 2> put_then_signal{
          put(other, member.box.id(), 64, &value, 8),
          fetch_add(other, member.box.id(), 0, 1, nullptr)};
      EXPECT_TRUE(member.fabric->post(put_then_signal).all());
      sleep_until(member, [&] { return member.word(0) == 1; });
    } else {
      sleep_until(member, [&] { return called; });
      EXPECT_EQ(member.fabric->send(other, 7, {}), Refusal::none);
      sleep_until(member, [&] { return member.word(0) == 1; });
      EXPECT_EQ(member.word(8), 9u);
      signal(compare_swap(other, member.box.id(), 0, 0, 1, nullptr));
    }
  });
}

TEST(ShmWaiting, AnyThreadMayWakeASleeper) {
  const auto fabric = join({.group = fresh_group(), .members = 1, .silence_timeout_ms = 0});
  for (int i = 0; i < 200; ++i) {
    fabric->prepare_sleep();
    std::thread waker([&] { fabric->wake(); });
    fabric->sleep(UINT64_MAX);
    waker.join();
  }
}

TEST(ShmWaiting, AWakeThatComesEarlyIsNotLost) {
  const auto fabric = join({.group = fresh_group(), .members = 1, .silence_timeout_ms = 0});
  fabric->wake();
  for (int i = 0; i < 100'000; ++i) fabric->poll();  // which see the bell
  fabric->prepare_sleep();
  fabric->poll();
  fabric->sleep(UINT64_MAX);
}

TEST(ShmWaiting, WakesForAnAppointment) {
  const auto fabric = join({.group = fresh_group(), .members = 1, .silence_timeout_ms = 0});
  const std::uint64_t time_ns = fabric->now_ns() + 1'000'000;
  while (fabric->now_ns() < time_ns) {
    fabric->wake_at(time_ns + 3'600'000'000'000);
    fabric->wake_at(time_ns);
    fabric->prepare_sleep();
    fabric->sleep(UINT64_MAX);
  }
}

TEST(ShmWaiting, ASleepEndsAfterItsTimeout) {
  const auto fabric = join({.group = fresh_group(), .members = 1, .silence_timeout_ms = 0});
  const std::uint64_t before_ns = fabric->now_ns();
  fabric->prepare_sleep();
  fabric->sleep(2'000'000);
  EXPECT_GE(fabric->now_ns(), before_ns + 2'000'000);
}

TEST(ShmWaiting, TheWaitDescriptorBecomesReadableForAForeignLoop) {
  run_members(2, [](Member& member) {
    const Rank me = member.fabric->rank(), other = 1 - me;
    constexpr std::uint64_t kRounds = 200;
    for (std::uint64_t round = me; round < kRounds; round += 2) {
      while (member.word(0) != round) {
        member.fabric->prepare_sleep();
        member.fabric->poll();
        pollfd watched{member.fabric->wait_descriptor(), POLLIN, 0};
        if (member.word(0) != round) ::poll(&watched, 1, -1);
        member.fabric->cancel_sleep();
        member.fabric->poll();
      }
      // The last one is not answered: who sent it may be gone.
      if (round + 1 < kRounds) member.write_word(other, 0, round + 1);
    }
  });
}

constexpr int kPatienceMs = 60'000;

bool readable(const Fabric& fabric, int timeout_ms) {
  pollfd watched{fabric.wait_descriptor(), POLLIN, 0};
  return ::poll(&watched, 1, timeout_ms) == 1;
}

/// As a foreign loop does; returns whether the descriptor became readable.
bool wait_as_a_foreign_loop(Fabric& fabric, int timeout_ms) {
  fabric.prepare_sleep();
  fabric.poll();
  const bool woken = readable(fabric, timeout_ms);
  fabric.cancel_sleep();
  fabric.poll();
  return woken;
}

/// SHM-W5 promises what this test checks.
TEST(ShmWaiting, TheWaitDescriptorBecomesReadableForTheHeartbeat) {
  const auto fabric = join({.group = fresh_group(), .members = 1});
  for (int beat = 0; beat < 3; ++beat) {
    const std::uint64_t before_ns = fabric->recent_ns();
    EXPECT_TRUE(wait_as_a_foreign_loop(*fabric, kPatienceMs));
    EXPECT_GT(fabric->recent_ns(), before_ns);
  }
}

TEST(ShmWaiting, TheWaitDescriptorBecomesReadableForAnAppointment) {
  const auto fabric = join({.group = fresh_group(), .members = 1, .silence_timeout_ms = 0});
  fabric->wake_at(fabric->now_ns() + 1'000'000);
  EXPECT_TRUE(wait_as_a_foreign_loop(*fabric, kPatienceMs));
  EXPECT_FALSE(wait_as_a_foreign_loop(*fabric, 0));  // it is over
  fabric->prepare_sleep();
  fabric->wake_at(fabric->now_ns() + 1'000'000);  // a layer, in the last poll
  EXPECT_TRUE(readable(*fabric, kPatienceMs));
  fabric->cancel_sleep();
}

TEST(ShmWaiting, TheWaitDescriptorIsNotReadableOnceAllIsHandled) {
  const std::string group = fresh_group();
  std::array<std::unique_ptr<Member>, 2> members;
  const auto join = [&](Rank rank) {
    members[rank] = std::make_unique<Member>(
        JoinOptions{.group = group, .members = 2, .rank = rank, .silence_timeout_ms = 0});
  };
  {
    const std::jthread second(join, 1);
    join(0);
  }
  Fabric& fabric = *members[0]->fabric;
  const std::vector<std::function<void()>> events = {
      [&] { members[1]->write_word(0, 0, 1); },
      [&] { EXPECT_EQ(members[1]->fabric->send(0, 0, {}), Refusal::none); },
      [&] { fabric.wake(); },
      [&] { members[1].reset(); },
  };
  fabric.receive(0, [](Rank, std::span<const std::byte>) {});
  while (wait_as_a_foreign_loop(fabric, 0)) {
  }
  for (const auto& happen : events) {
    fabric.prepare_sleep();
    happen();
    EXPECT_TRUE(readable(fabric, kPatienceMs));
    fabric.cancel_sleep();
    fabric.poll();
    EXPECT_FALSE(wait_as_a_foreign_loop(fabric, 0));
  }
  EXPECT_TRUE(fabric.failed(1));
}

extern "C" void stop_in_system_call(int) { raise(SIGSTOP); }

/// This process stops when it is about to ring a bell.
bool stop_at_bells() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_write, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, sizeof(std::uint64_t), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{6, rules};
  return signal(SIGSYS, stop_in_system_call) != SIG_ERR &&
         prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

Process ringing_process(const std::string& group, Rank rank, bool stops) {
  return Process([=](Parent& parent) {
    Member member({.group = group, .members = 3, .rank = rank, .silence_timeout_ms = 0});
    parent.send_line(!stops || stop_at_bells() ? "in" : "skip: the kernel allows no filter");
    static_cast<void>(parent.receive_line());
    member.write_word(0, rank, 1);
    static_cast<void>(parent.receive_line());
    return 0;
  });
}

/// By SHM-W4 the word changes only after the bell was rung.
TEST(ShmWaiting, AWriterThatIsStoppedBeforeItRingsKeepsNobodyFromRinging) {
  const std::string group = fresh_group();
  Process first = ringing_process(group, 1, true);
  Process second = ringing_process(group, 2, false);
  Member member({.group = group, .members = 3, .rank = 0, .silence_timeout_ms = 0});
  const std::string text = first.receive_line();
  if (text.starts_with("skip")) GTEST_SKIP() << text;
  ASSERT_EQ(second.receive_line(), "in");
  while (wait_as_a_foreign_loop(*member.fabric, 0)) {
  }
  member.fabric->prepare_sleep();
  first.send_line("write");
  int status = 0;
  ASSERT_EQ(waitpid(first.pid(), &status, WUNTRACED), first.pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_EQ(member.word(1), 1u);
  second.send_line("write");
  EXPECT_TRUE(readable(*member.fabric, kPatienceMs));
  member.fabric->cancel_sleep();
}

TEST(ShmWaiting, AnIdleGroupSleepsButForItsHeartbeats) {
  run_members(3, [](Member& member) {
    rusage before{}, after{};
    getrusage(RUSAGE_THREAD, &before);
    for (int wakes = 0; wakes < 2; ++wakes) {  // by itself, of silence_timeout_ms / 4 each
      member.fabric->prepare_sleep();
      if (member.fabric->poll() == 0) member.fabric->sleep(UINT64_MAX);
      member.fabric->cancel_sleep();
    }
    getrusage(RUSAGE_THREAD, &after);
    EXPECT_LE(after.ru_nvcsw - before.ru_nvcsw, 100) << "it should have slept in two stretches";
    // Stay until all have slept, so that nobody's end wakes another.
    for (Rank peer = 0; peer < 3; ++peer)
      EXPECT_TRUE(member.fabric->post(fetch_add(peer, member.box.id(), 8, 1, nullptr)).all());
    while (member.word(1) < 3) poll_politely(*member.fabric);
  });
}

}  // namespace
}  // namespace dunlin

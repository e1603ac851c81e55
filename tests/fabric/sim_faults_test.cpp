#include <array>
#include <string>
#include <vector>

#include "fabric/sim_world.hpp"

/// Each fault, and what the others see of it.
namespace dunlin::sim {
namespace {

/// Failures are noticed at exactly known times: retries last 50 us, silence 200 us.
Profile brittle() {
  Profile figures = plain();
  figures.bandwidth_bytes_per_ns = 1;
  figures.retry_timeout_ns = 50'000;
  figures.heartbeat_interval_ns = 10'000;
  figures.silence_timeout_ns = 200'000;
  return figures;
}

struct FaultWorld : TestWorld {
  explicit FaultWorld(std::uint32_t nodes = 3, const Profile& figures = brittle())
      : TestWorld(figures, nodes), seen(nodes) {
    settle();
    for (Rank r = 0; r < nodes; ++r) {
      subscriptions.push_back(world.fabric(r).subscribe([this, r](const Event& event) {
        if (event.kind == Event::Kind::peer_failed) seen[r].push_back(event.peer);
      }));
    }
  }
  [[nodiscard]] bool failed(Rank at, Rank peer) { return world.fabric(at).failed(peer); }
  std::vector<std::vector<Rank>> seen;  // failures, by the node that saw them
  std::vector<Subscription> subscriptions;
};

TEST(SimFaults, ACrashIsNoticedByItsSilence) {
  FaultWorld t;
  const auto crashed_at = t.world.now_ns();
  t.world.crash(2);
  t.time_until([&] { return t.failed(0, 2) && t.failed(1, 2); });
  const auto took = t.world.now_ns() - crashed_at;
  EXPECT_GE(took, 200'000U + 1'000U - 10'000U);
  EXPECT_LE(took, 200'000U + 1'000U + 100U);
  EXPECT_NE(t.world.fabric(0).failure_text(2).find("200 us"), std::string::npos)
      << t.world.fabric(0).failure_text(2);
  t.settle();
  EXPECT_EQ(t.seen[0], std::vector<Rank>{2});
  EXPECT_EQ(t.seen[1], std::vector<Rank>{2});
  EXPECT_FALSE(t.failed(0, 1));
}

TEST(SimFaults, ACrashIsNoticedSoonerByAnOperation) {
  FaultWorld t;
  t.world.crash(2);
  const std::uint64_t value = 1;
  Completion done;
  t.post(0, write(2, t.id(0), 0, &value, 8).notify(done));
  const auto took = t.time_until([&] { return done.finished(); });
  EXPECT_GE(took, 50'000U);
  EXPECT_LE(took, 50'100U);
  EXPECT_TRUE(done.failed());
  EXPECT_EQ(done.failed_peer(), 2U);
  EXPECT_TRUE(t.failed(0, 2));
  EXPECT_FALSE(t.failed(1, 2)) << "the other has not tried";
  t.settle();
  EXPECT_EQ(t.seen[0], std::vector<Rank>{2}) << "once, though it is silent as well";
}

TEST(SimFaults, EveryKindOfOperationToACrashedNodeFails) {
  FaultWorld t;
  t.world.crash(2);
  std::uint64_t word = 3;
  std::vector<std::uint64_t> block(64, 1);
  std::array<Completion, 5> done;
  t.post(0, put(2, t.id(0), 0, block.data(), 512).notify(done[0]));
  t.post(0, write(2, t.id(0), 0, block.data(), 512).notify(done[1], Notify::remotely));
  t.post(0, read(2, t.id(0), 0, block.data(), 512).notify(done[2]));
  t.post(0, fetch_add(2, t.id(0), 0, 1, &word).notify(done[3]));
  t.post(0, compare_swap(2, t.id(0), 0, 0, 1, &word).notify(done[4]));
  t.settle();
  for (const Completion& each : done) {
    EXPECT_TRUE(each.finished());
    EXPECT_TRUE(each.failed());
  }
  EXPECT_EQ(word, 3U);
}

TEST(SimFaults, OperationsToAFailedPeerFailAtOnceAndUnconnectedOnesToo) {
  FaultWorld t;
  t.world.crash(2);
  t.settle();
  ASSERT_TRUE(t.failed(0, 2));
  const std::uint64_t value = 1;
  Completion done;
  t.post(0, write(2, t.id(0), 0, &value, 8).notify(done));
  EXPECT_FALSE(done.finished()) << "only poll() finishes a completion";
  const auto took = t.time_until([&] { return done.finished(); });
  EXPECT_LE(took, 100U);
  EXPECT_TRUE(done.failed());
  EXPECT_EQ(t.world.fabric(0).send(2, 1, {}), Refusal::none);
}

TEST(SimFaults, ACrashedNodeRunsNoMoreAndItsMemoryStays) {
  FaultWorld t;
  std::size_t rounds = 0;
  t.world.attach(2, [&] {
    ++rounds;
    return 0;
  });
  const std::uint64_t value = 9;
  t.post(0, write(2, t.id(0), 0, &value, 8));
  t.settle();
  const std::size_t before = rounds;
  t.world.crash(2);
  t.post(1, write(2, t.id(1), 8, &value, 8));
  t.settle();
  EXPECT_EQ(rounds, before);
  EXPECT_EQ(t.load(2, 0), 9U);
  EXPECT_EQ(t.load(2, 8), 0U);
}

TEST(SimFaults, ACrashInTheMiddleOfAWriteLeavesItsBeginning) {
  FaultWorld t;
  const std::vector<std::uint64_t> source(128, 1);  // 1024 bytes, 1024 ns
  const auto start = t.world.now_ns();
  t.post(2, write(0, t.id(2), 0, source.data(), 1024));
  t.world.at(start + 500, [&] { t.world.crash(2); });
  t.settle();
  EXPECT_EQ(t.load(0, 0), 1U);
  EXPECT_EQ(t.load(0, 384), 1U);
  EXPECT_EQ(t.load(0, 640), 0U);
  EXPECT_EQ(t.load(0, 1016), 0U);
}

TEST(SimFaults, ACrashInTheMiddleOfABatchSendsTheFirstOnly) {
  Profile figures = brittle();
  figures.post_ns = figures.post_batched_ns = 1'000;
  FaultWorld t(4, figures);
  const auto start = t.world.now_ns();
  t.world.on(0, [&] {
    const std::uint64_t value = 1;
    const std::vector<Operation> batch{write(1, t.id(0), 0, &value, 8),
                                       write(2, t.id(0), 0, &value, 8),
                                       write(3, t.id(0), 0, &value, 8)};
    EXPECT_TRUE(t.world.fabric(0).post(batch).all());
  });
  t.world.at(start + 2'500, [&] { t.world.crash(0); });
  t.settle();
  EXPECT_EQ(t.load(1), 1U);
  EXPECT_EQ(t.load(2), 1U);
  EXPECT_EQ(t.load(3), 0U);
}

TEST(SimFaults, AHungNodesNicGoesOnServingUntilItsSilenceIsNoticed) {
  FaultWorld t;
  memory::store(t.word(2, 0), 11);
  t.world.hang(2);
  std::uint64_t here = 0;
  Completion done;
  t.post(0, read(2, t.id(0), 0, &here, 8).notify(done));
  t.time_until([&] { return done.finished(); });
  EXPECT_FALSE(done.failed());
  EXPECT_EQ(here, 11U);
  EXPECT_FALSE(t.failed(0, 2));
  t.settle();
  EXPECT_TRUE(t.failed(0, 2));
  EXPECT_TRUE(t.failed(1, 2));
  Completion late;
  t.post(0, read(2, t.id(0), 0, &here, 8).notify(late));
  t.settle();
  EXPECT_TRUE(late.failed()) << "a failed peer's memory is not touched, though its NIC lives";
}

TEST(SimFaults, AShortPauseIsForgiven) {
  FaultWorld t;
  t.world.pause(2, 150'000);
  const std::uint64_t value = 1;
  Completion done;
  t.post(0, write(2, t.id(0), 0, &value, 8).notify(done));
  t.settle();
  EXPECT_FALSE(done.failed());
  EXPECT_FALSE(t.failed(0, 2));
  EXPECT_FALSE(t.failed(2, 0));
}

TEST(SimFaults, ALongPauseIsAFailureToBothSides) {
  FaultWorld t;
  t.world.pause(2, 500'000);
  t.settle();
  EXPECT_TRUE(t.failed(0, 2));
  EXPECT_TRUE(t.failed(1, 2));
  EXPECT_TRUE(t.failed(2, 0)) << "who was given up finds nobody who answers";
  EXPECT_TRUE(t.failed(2, 1));
  EXPECT_FALSE(t.failed(0, 1));
}

TEST(SimFaults, AVeryLongRoundIsAPause) {
  FaultWorld t;
  t.world.on(2, [&] { t.world.fabric(2).spend(400'000); });
  t.settle();
  EXPECT_TRUE(t.failed(0, 2));
}

TEST(SimFaults, ZombiesWriteNothing) {
  FaultWorld t;
  // Given up while paused, it wakes and writes: nobody may see that.
  t.world.pause(2, 500'000);
  const std::uint64_t value = 66;
  Completion done;
  t.world.on(2, [&] {
    const Operation late = write(0, t.id(2), 0, &value, 8);
    EXPECT_TRUE(t.world.fabric(2).post(late.notify(done)).all());
  });
  t.settle();
  EXPECT_EQ(t.load(0), 0U);
  EXPECT_TRUE(done.finished());
  EXPECT_TRUE(done.failed());
}

TEST(SimFaults, ACutLinkFailsBothWays) {
  FaultWorld t;
  t.world.cut(0, 1);
  const std::uint64_t value = 1;
  Completion there;
  Completion back;
  t.post(0, write(1, t.id(0), 0, &value, 8).notify(there));
  t.post(1, write(0, t.id(1), 0, &value, 8).notify(back));
  t.world.run_for(10'000);
  EXPECT_EQ(t.load(1), 0U);
  EXPECT_EQ(t.load(0), 1U) << "the other direction carries data, but no acknowledgement returns";
  EXPECT_FALSE(back.finished());
  t.settle();
  EXPECT_TRUE(there.failed());
  EXPECT_TRUE(back.failed());
  EXPECT_TRUE(t.failed(0, 1));
  EXPECT_TRUE(t.failed(1, 0));
  EXPECT_FALSE(t.failed(0, 2));
  EXPECT_FALSE(t.failed(2, 1));
}

TEST(SimFaults, ACutOfAnIdleLinkIsNoticedByTheOneWhoHearsNothing) {
  FaultWorld t;
  t.world.cut(0, 1);
  t.time_until([&] { return t.failed(1, 0); });
  EXPECT_FALSE(t.failed(0, 1));
  t.settle();
  EXPECT_TRUE(t.failed(0, 1)) << "and then by the other, to whom the first speaks no more";
}

TEST(SimFaults, ALinkThatHealsInTimeLosesNothingAndKeepsTheOrder) {
  FaultWorld t;
  t.world.cut(0, 1);
  std::vector<std::uint64_t> seen;
  t.world.attach(1, [&] {
    const std::uint64_t now = t.load(1);
    if (!seen.empty() && seen.back() == now) return 0;
    seen.push_back(now);
    return 1;
  });
  std::uint64_t former = 7;
  std::uint64_t here = 0;
  std::array<Completion, 4> done;
  const std::array<std::uint64_t, 2> values{1, 2};
  t.post(0, write(1, t.id(0), 0, &values[0], 8).notify(done[0]));
  t.post(0, write(1, t.id(0), 0, &values[1], 8).notify(done[1]));
  t.post(0, fetch_add(1, t.id(0), 8, 5, &former).notify(done[2]));
  t.post(0, read(1, t.id(0), 8, &here, 8).notify(done[3]));
  t.world.run_for(30'000);
  t.world.heal(0, 1);
  t.settle();
  for (const Completion& each : done) EXPECT_TRUE(each.finished() && !each.failed());
  EXPECT_EQ(seen.back(), 2U);
  EXPECT_EQ(t.load(1, 8), 5U);
  EXPECT_EQ(former, 0U);
  EXPECT_EQ(here, 5U);
  EXPECT_FALSE(t.failed(0, 1));
  EXPECT_FALSE(t.failed(1, 0));
}

TEST(SimFaults, AnAtomicWhoseAnswerWasLostIsDoneOnce) {
  FaultWorld t;
  t.world.cut(1, 0);
  std::uint64_t former = 7;
  std::uint64_t here = 7;
  Completion done;
  Completion read_done;
  t.post(0, fetch_add(1, t.id(0), 0, 5, &former).notify(done));
  t.post(0, read(1, t.id(0), 0, &here, 8).notify(read_done));
  t.world.run_for(30'000);
  EXPECT_EQ(t.load(1), 5U);
  EXPECT_FALSE(done.finished());
  EXPECT_FALSE(read_done.finished());
  t.world.heal(1, 0);
  t.settle();
  EXPECT_TRUE(done.finished() && !done.failed());
  EXPECT_TRUE(read_done.finished() && !read_done.failed());
  EXPECT_EQ(t.load(1), 5U);
  EXPECT_EQ(former, 0U);
  EXPECT_EQ(here, 5U);
}

TEST(SimFaults, HealingTooLateDoesNotHelp) {
  FaultWorld t;
  t.world.cut(0, 1);
  t.settle();
  ASSERT_TRUE(t.failed(0, 1));
  t.world.heal(0, 1);
  const std::uint64_t value = 1;
  Completion done;
  t.post(0, write(1, t.id(0), 0, &value, 8).notify(done));
  t.settle();
  EXPECT_TRUE(done.failed());
  EXPECT_EQ(t.load(1), 0U);
}

TEST(SimFaults, SilenceCanBeIgnored) {
  Profile figures = brittle();
  figures.silence_timeout_ns = 0;
  FaultWorld t(3, figures);
  t.world.hang(2);
  t.settle();
  EXPECT_FALSE(t.failed(0, 2));
}

TEST(SimFaults, AFailedPeersRegionsNeedNoWithdrawal) {
  FaultWorld t;
  t.world.crash(2);
  t.settle();
  t.boxes[0] = {};
  t.boxes[2] = {};
  t.settle();
  EXPECT_FALSE(t.failed(1, 0));
}

TEST(SimFaults, AMessageThatIsNeverAcknowledgedFailsItsLink) {
  Profile figures = plain();
  figures.silence_timeout_ns = 0;
  TestWorld t(figures);
  int heard = 0;
  t.world.fabric(1).receive(0, [&](Rank, std::span<const std::byte>) { ++heard; });
  t.world.cut(1, 0);
  t.world.on(0, [&] { EXPECT_EQ(t.world.fabric(0).send(1, 0, {}), Refusal::none); });
  EXPECT_TRUE(t.world.run_until([&] { return t.world.fabric(0).failed(1); }, 10'000'000));
  EXPECT_EQ(heard, 1);
}

TEST(SimFaults, MessagesWhoseAcknowledgementsWereLostAreHeardOnce) {
  TestWorld t(plain());
  std::uint64_t heard = 0, sent = 0;
  t.world.fabric(1).receive(0, [&](Rank, std::span<const std::byte>) { ++heard; });
  const auto fill = [&] {
    while (t.world.fabric(0).send(1, 0, {}) == Refusal::none) ++sent;
  };
  t.world.cut(1, 0);
  t.world.on(0, fill);
  t.world.run_for(100'000);
  t.world.heal(1, 0);
  t.settle();
  const std::uint64_t sent_first = sent;
  EXPECT_EQ(heard, sent_first);
  t.world.on(0, fill);
  t.settle();
  EXPECT_EQ(sent, 2 * sent_first) << "there is room for as many again";
  EXPECT_EQ(heard, sent);
  EXPECT_FALSE(t.world.fabric(0).failed(1));
}

TEST(SimFaults, WhatAPeerHasSaidIsHeardBeforeItsEnd) {
  TestWorld t(plain());
  std::string order;
  t.world.fabric(0).receive(0, [&](Rank, std::span<const std::byte>) { order += "said "; });
  const Subscription end = t.world.fabric(0).subscribe([&](const Event& e) {
    if (e.kind == Event::Kind::peer_failed) order += "failed ";
  });
  t.world.pause(0, 3'000'000);  // so that it learns of both at once
  t.world.on(1, [&] { EXPECT_EQ(t.world.fabric(1).send(0, 0, {}), Refusal::none); });
  t.world.at(t.world.now_ns() + 100'000, [&] { t.world.crash(1); });
  t.world.run_for(10'000'000);
  EXPECT_EQ(order, "said failed ");
}

TEST(SimFaults, AllFaultsAtOnceLeaveNothingHanging) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Profile figures = brittle();
    figures.jitter = 0.5;
    figures.ordered_placement = seed % 2 == 0;
    figures.native_atomics = seed % 3 != 0;
    figures.queue_slots = 16;
    constexpr std::uint32_t kNodes = 5;
    TestWorld t(figures, kNodes, seed);
    World& world = t.world;
    const auto any_node = [&] { return static_cast<Rank>(world.random() % kNodes); };
    std::array<std::uint64_t, kNodes> here{};
    std::vector<std::uint64_t> block(100, seed);
    std::array<std::array<Completion, 4>, kNodes> done;
    for (Rank r = 0; r < kNodes; ++r) {
      world.attach(r, [&, r]() -> std::size_t {
        if (!done[r][0].finished() || world.now_ns() > 400'000) return 0;
        const Rank peer = any_node();
        const std::array<Operation, 4> batch{
            put(peer, t.id(r), 64, block.data(), 800).notify(done[r][0]),
            write(peer, t.id(r), 0, &seed, 8).notify(done[r][1], Notify::remotely),
            read(peer, t.id(r), 64, block.data(), 800).notify(done[r][2]),
            fetch_add(peer, t.id(r), 8, 1, &here[r]).notify(done[r][3])};
        return world.fabric(r).post(batch).accepted;
      });
    }
    for (int fault = 0; fault < 6; ++fault) {
      world.at(world.random() % 200'000, [&] {
        const Rank a = any_node();
        const Rank b = any_node();
        switch (world.random() % 6) {
          case 0:
            return world.crash(a);
          case 1:
            return world.hang(a);
          case 2:
            return world.pause(a, world.random() % 400'000);
          case 3:
            return a == b ? world.slow(a, 7) : world.cut(a, b);
          case 4:
            return world.heal(a, b);
          default:
            return world.slow_link(a, b, 20);
        }
      });
    }
    std::array<bool, kNodes> computes{};
    t.settle();
    for (Rank r = 0; r < kNodes; ++r) world.on(r, [&, r] { computes[r] = true; });
    t.settle();
    for (Rank r = 0; r < kNodes; ++r) {
      for (const Completion& each : done[r])
        EXPECT_TRUE(each.finished() || !computes[r]) << "node " << r << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace dunlin::sim

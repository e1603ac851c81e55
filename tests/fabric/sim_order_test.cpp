#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "fabric/sim_world.hpp"

/// What may overtake what, and what waits: signals, completions, queues and messages.
namespace dunlin::sim {
namespace {

// --- without ordered placement -------------------------------------------------------------------

Profile wild() {
  Profile figures = ruler();
  figures.ordered_placement = false;
  figures.jitter = 0.9;
  return figures;
}

TEST(SimUnordered, PutsOvertakeEachOther) {
  TestWorld t(wild());
  t.settle();
  std::size_t overtaken = 0;
  std::uint64_t one = 1;
  for (std::size_t i = 0; i < 50; ++i) t.post(0, put(1, t.id(0), i * 8, &one, 8));
  t.world.attach(1, [&] {
    for (std::size_t i = 0; i + 1 < 50; ++i) {
      if (t.load(1, i * 8) == 0 && t.load(1, i * 8 + 8) == 1) ++overtaken;
    }
    return 0;
  });
  t.settle();
  EXPECT_GT(overtaken, 0U);
}

TEST(SimUnordered, LinesOfOnePutLandInAnyOrder) {
  std::set<std::size_t> first_lines;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    TestWorld t(wild(), 2, seed);
    t.settle();
    const auto source = numbers(64);
    t.post(0, put(1, t.id(0), 0, source.data(), 512));
    const auto placed = [&](std::size_t line) { return t.load(1, line * 64) != 0; };
    const auto any = [&] {
      for (std::size_t line = 0; line < 8; ++line) {
        if (placed(line)) return true;
      }
      return false;
    };
    t.time_until(any);
    for (std::size_t line = 0; line < 8; ++line) {
      if (placed(line)) first_lines.insert(line);
    }
    t.settle();
    for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(t.load(1, i * 8), i + 1);
  }
  EXPECT_GT(first_lines.size(), 3U);
}

TEST(SimUnordered, ASignalStillFollowsAllThatWasPostedBeforeIt) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    TestWorld t(wild(), 2, seed);
    constexpr std::size_t kPuts = 6;
    constexpr std::size_t kBytes = 320;
    std::vector<std::uint64_t> source(kBytes / 8);
    std::uint64_t wrong = 0;
    std::uint64_t seen = 0;
    t.world.attach(1, [&] {
      const std::uint64_t round = t.load(1, 0);
      if (round == seen) return 0;
      seen = round;
      for (std::size_t i = 0; i < kPuts * kBytes; i += 8) {
        if (t.load(1, 64 + i) != round) ++wrong;
      }
      return 1;
    });
    for (std::uint64_t round = 1; round <= 5; ++round) {
      std::fill(source.begin(), source.end(), round);
      for (std::size_t i = 0; i < kPuts; ++i)
        t.post(0, put(1, t.id(0), 64 + i * kBytes, source.data(), kBytes));
      t.post(0, write(1, t.id(0), 0, &round, 8));
      t.time_until([&] { return seen == round; });
    }
    ASSERT_EQ(wrong, 0U) << "seed " << seed;
  }
}

TEST(SimUnordered, ALocalCompletionDoesNotWaitForTheSignalsTurnButARemoteOneDoes) {
  Profile figures = ruler();
  figures.native_atomics = false;
  TestWorld t(figures);
  t.settle();
  t.world.pause(1, 5'000);  // until then, the atomic waits, and so do the writes behind it
  const std::uint64_t flag = 1;
  Completion local;
  Completion remote;
  t.post(0, fetch_add(1, t.id(0), 8, 1, nullptr));
  t.post(0, write(1, t.id(0), 0, &flag, 8).notify(local));
  t.post(0, write(1, t.id(0), 0, &flag, 8).notify(remote, Notify::remotely));
  t.world.run_for(4'000);
  EXPECT_TRUE(local.finished());
  EXPECT_FALSE(remote.finished());
  EXPECT_EQ(t.load(1), 0U);
  t.time_until([&] { return remote.finished(); });
  EXPECT_EQ(t.load(1), 1U);
}

// --- queues --------------------------------------------------------------------------------------

TEST(SimQueues, RefuseWhatDoesNotFitAndWakeWhoWaits) {
  Profile figures = ruler();
  figures.queue_slots = 4;
  TestWorld t(figures);
  constexpr std::uint64_t kAll = 50;
  std::uint64_t posted = 0;
  std::uint64_t refused = 0;
  t.world.attach(0, [&]() -> std::size_t {
    if (posted == kAll) return 0;
    const std::uint64_t next = posted + 1;
    const Posted result = t.world.fabric(0).post(write(1, t.id(0), 0, &next, 8));
    if (!result.all()) {
      EXPECT_EQ(result.refusal, Refusal::queue_full);
      EXPECT_EQ(result.accepted, 0U);
      ++refused;
      return 0;  // it must be polled again without asking
    }
    ++posted;
    return 1;
  });
  t.time_until([&] { return t.load(1) == kAll; });
  EXPECT_GT(refused, 0U);
  EXPECT_LT(refused, 2 * kAll) << "it is not polled in vain all the time";
}

TEST(SimQueues, ABatchIsTakenUpToTheFirstThatDoesNotFit) {
  Profile figures = ruler();
  figures.queue_slots = 4;
  TestWorld t(figures, 3);
  t.settle();
  const std::uint64_t one = 1;
  const std::vector<Operation> batch(10, write(1, t.id(0), 0, &one, 8));
  const Posted posted = t.world.fabric(0).post(batch);
  EXPECT_EQ(posted.accepted, 4U);
  EXPECT_EQ(posted.refusal, Refusal::queue_full);
  t.post(0, write(2, t.id(0), 0, &one, 8));  // each peer has its own
}

TEST(SimMessages, ArriveInOrderWithWritesAndWaitForTheirHandler) {
  TestWorld t(ruler());
  const std::uint64_t one = 1;
  t.post(0, write(1, t.id(0), 0, &one, 8));
  for (std::uint64_t i = 1; i <= 3; ++i)
    ASSERT_EQ(t.world.fabric(0).send(1, 5, std::as_bytes(std::span(&i, 1))), Refusal::none);
  t.settle();
  std::vector<std::uint64_t> heard;
  t.world.fabric(1).receive(5, [&](Rank from, std::span<const std::byte> message) {
    EXPECT_EQ(from, 0U);
    EXPECT_EQ(t.load(1), 1U);
    std::uint64_t value = 0;
    std::memcpy(&value, message.data(), sizeof(value));
    heard.push_back(value);
  });
  t.settle();
  EXPECT_EQ(heard, (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST(SimMessages, AFullRingRefusesUntilTheTargetHasHandledSome) {
  TestWorld t(ruler());
  t.settle();
  const std::array<std::byte, kMaxMessageBytes> message{};
  std::size_t sent = 0;
  while (t.world.fabric(0).send(1, 5, message) == Refusal::none) ++sent;
  EXPECT_GT(sent, 4U);
  EXPECT_LE(sent * kMaxMessageBytes, kMessageRingBytes);
  t.settle();
  EXPECT_EQ(t.world.fabric(0).send(1, 5, message), Refusal::queue_full);
  std::size_t heard = 0;
  t.world.fabric(1).receive(5, [&](Rank, std::span<const std::byte>) { ++heard; });
  t.time_until([&] { return heard == sent; });
  t.settle();
  EXPECT_EQ(t.world.fabric(0).send(1, 5, message), Refusal::none);
}

TEST(SimAtomics, EmulatedOnesAreDoneByTheTargetsPoll) {
  Profile figures = ruler();
  figures.native_atomics = false;
  TestWorld t(figures);
  t.settle();
  t.world.pause(1, 5'000);
  std::uint64_t before = 7;
  const std::uint64_t flag = 1;
  Completion done;
  t.post(0, fetch_add(1, t.id(0), 8, 1, &before).notify(done));
  t.post(0, write(1, t.id(0), 0, &flag, 8));
  t.world.run_for(4'000);
  EXPECT_EQ(t.load(1, 8), 0U);
  EXPECT_EQ(t.load(1, 0), 0U) << "nor does a later signal overtake it";
  t.time_until([&] { return done.finished(); });
  EXPECT_EQ(before, 0U);
  EXPECT_EQ(t.load(1, 8), 1U);
  EXPECT_EQ(t.load(1, 0), 1U);
}

}  // namespace
}  // namespace dunlin::sim

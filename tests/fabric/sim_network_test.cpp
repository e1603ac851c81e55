#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <set>
#include <vector>

#include "fabric/sim_world.hpp"

/// How long things take, in exact virtual nanoseconds, and what memory looks like meanwhile.
namespace dunlin::sim {
namespace {

TEST(SimNetwork, AByteTakesTheLatency) {
  TestWorld t(ruler());
  t.settle();
  alignas(8) const std::uint8_t one = 1;
  t.post(0, write(1, t.id(0), 0, &one, 1));
  EXPECT_EQ(t.time_until([&] { return t.load(1) == 1; }), 1'000U);
}

TEST(SimNetwork, ABlockTakesItsBytesOnTop) {
  TestWorld t(ruler());
  t.settle();
  const auto source = numbers(512);
  Completion done;
  t.post(0, write(1, t.id(0), 0, source.data(), 4096).notify(done));
  EXPECT_EQ(t.time_until([&] { return t.load(1, 4088) == 512; }), 1'000U + 4'095U);
}

TEST(SimNetwork, EachLineIsPlacedWhenItsBytesHaveArrived) {
  TestWorld t(ruler());
  t.settle();
  const auto source = numbers(32);
  const std::uint64_t start = t.world.now_ns();
  t.post(0, write(1, t.id(0), 0, source.data(), 256));
  std::vector<std::uint64_t> placed_at;
  for (std::size_t line = 0; line < 4; ++line) {
    t.time_until([&] { return t.load(1, line * 64 + 56) != 0; });
    placed_at.push_back(t.world.now_ns() - start);
    EXPECT_EQ(t.load(1, line * 64), line * 8 + 1) << "a line is placed whole";
    if (line < 3) {
      EXPECT_EQ(t.load(1, (line + 1) * 64), 0U) << "and the next one later";
    }
  }
  EXPECT_EQ(placed_at, (std::vector<std::uint64_t>{1'063, 1'127, 1'191, 1'255}));
}

TEST(SimNetwork, OperationsOfOneNicFollowEachOtherAtItsGap) {
  TestWorld t(ruler());
  t.settle();
  const std::uint64_t value = 7;
  for (std::size_t i = 0; i < 10; ++i) t.post(0, write(1, t.id(0), i * 8, &value, 8));
  EXPECT_EQ(t.time_until([&] { return t.load(1, 72) == 7; }), 1'000U + 7U + 9U * 20U);
}

TEST(SimNetwork, ManySendersShareTheReceiversPort) {
  constexpr std::uint32_t kSenders = 8;
  TestWorld t(ruler(), kSenders + 1);
  t.settle();
  const auto source = numbers(128);
  std::vector<Completion> done(kSenders);
  for (Rank r = 1; r <= kSenders; ++r)
    t.post(r, write(0, t.id(r), r * 1024, source.data(), 1024).notify(done[r - 1]));
  const auto all_there = [&] {
    for (Rank r = 1; r <= kSenders; ++r) {
      if (t.load(0, r * 1024 + 1016) != 128) return false;
    }
    return true;
  };
  // The wire is as fast as one sender: the last byte of the last block is byte 8 * 1024.
  EXPECT_EQ(t.time_until(all_there), 1'000U + kSenders * 1024U - 1U);
}

TEST(SimNetwork, OneSenderToManyIsLimitedByItsOwnPort) {
  constexpr std::uint32_t kReceivers = 8;
  TestWorld t(ruler(), kReceivers + 1);
  t.settle();
  const auto source = numbers(128);
  for (Rank r = 1; r <= kReceivers; ++r) t.post(0, put(r, t.id(0), 0, source.data(), 1024));
  EXPECT_EQ(t.time_until([&] { return t.load(kReceivers, 1016) == 128; }),
            1'000U + kReceivers * 1024U - 1U);
}

TEST(SimNetwork, AReadTakesARoundTripAndItsBytes) {
  TestWorld t(ruler());
  std::vector<std::uint64_t> here(128);
  for (std::size_t i = 0; i < 128; ++i) memory::store(t.word(1, i * 8), i + 1);
  t.settle();
  Completion done;
  t.post(0, read(1, t.id(0), 0, here.data(), 1024).notify(done));
  EXPECT_EQ(t.time_until([&] { return here[127] != 0; }), 2'000U + 1'023U);
  t.time_until([&] { return done.finished(); });
  EXPECT_EQ(here, numbers(128));
}

TEST(SimNetwork, AReadFetchesWhenItReachesTheTarget) {
  TestWorld t(ruler());
  t.settle();
  const std::uint64_t start = t.world.now_ns();
  // Reads sent at 0, 20, 40, ... reach the target 1000 ns later; the word changes at 1050.
  std::array<std::uint64_t, 6> seen{};
  std::array<Completion, 6> done;
  for (std::size_t i = 0; i < 6; ++i) t.post(0, read(1, t.id(0), 0, &seen[i], 8).notify(done[i]));
  t.world.at(start + 1'050, [&] { memory::store(t.word(1, 0), 1); });
  t.time_until([&] { return done[5].finished(); });
  EXPECT_EQ(seen, (std::array<std::uint64_t, 6>{0, 0, 0, 1, 1, 1}));
}

TEST(SimNetwork, ALargeReadCanSeeHalfOfAChange) {
  TestWorld t(ruler());
  t.settle();
  const std::uint64_t start = t.world.now_ns();
  std::array<std::uint64_t, 32> here{};
  Completion done;
  t.post(0, read(1, t.id(0), 0, here.data(), 256).notify(done));
  // Its four lines are fetched at 1000, 1064, 1128 and 1192.
  t.world.at(start + 1'100, [&] {
    for (std::size_t i = 0; i < 32; ++i) memory::store(t.word(1, i * 8), 1);
  });
  t.time_until([&] { return done.finished(); });
  EXPECT_EQ(here[0], 0U);
  EXPECT_EQ(here[15], 0U);
  EXPECT_EQ(here[16], 1U);
  EXPECT_EQ(here[31], 1U);
}

TEST(SimNetwork, AnAtomicTakesARoundTripAndReturnsTheFormerValue) {
  TestWorld t(ruler());
  memory::store(t.word(1, 8), 40);
  t.settle();
  std::uint64_t before = 0;
  Completion done;
  t.post(0, fetch_add(1, t.id(0), 8, 2, &before).notify(done));
  EXPECT_EQ(t.time_until([&] { return t.load(1, 8) == 42; }), 1'000U);
  EXPECT_EQ(t.time_until([&] { return before == 40; }), 1'000U);
}

TEST(SimNetwork, AtomicsOfManyAreOneAfterTheOther) {
  constexpr std::uint32_t kNodes = 5;
  TestWorld t(ruler(), kNodes);
  t.settle();
  std::array<std::uint64_t, kNodes> before{};
  std::array<Completion, kNodes> done;
  for (Rank r = 0; r < kNodes; ++r)
    t.post(r, fetch_add(0, t.id(r), 0, 1, &before[r]).notify(done[r]));
  t.settle();
  EXPECT_EQ(t.load(0), kNodes);
  EXPECT_EQ(std::set<std::uint64_t>(before.begin(), before.end()).size(), kNodes);
}

/// When an addition of each node but 0 to words of node 0 has been executed, in nanoseconds after
/// it was posted; node r adds to the word at `offset_of(r)`.
std::vector<std::uint64_t> times_of_additions(const Profile& figures, std::uint32_t nodes,
                                              const std::function<std::size_t(Rank)>& offset_of) {
  TestWorld t(figures, nodes);
  t.settle();
  const std::uint64_t start = t.world.now_ns();
  for (Rank r = 1; r < nodes; ++r) t.post(r, fetch_add(0, t.id(r), offset_of(r), 1, nullptr));
  std::vector<std::uint64_t> times;
  const auto sum = [&] {
    std::uint64_t all = 0;
    for (std::size_t offset = 0; offset < 64 * nodes; offset += 8) all += t.load(0, offset);
    return all;
  };
  while (times.size() + 1 < nodes) {
    t.time_until([&] { return sum() > times.size(); });
    times.resize(sum(), t.world.now_ns() - start);
  }
  return times;
}

Profile with_gap_of(double same_word_gap_ns) {
  Profile figures = plain();
  figures.same_word_gap_ns = same_word_gap_ns;
  return figures;
}

TEST(SimNetwork, AtomicsOnOneWordFollowEachOtherAtItsGap) {
  const auto one_word = [](Rank) { return 8; };
  EXPECT_EQ(times_of_additions(with_gap_of(300), 4, one_word),
            (std::vector<std::uint64_t>{1'000, 1'300, 1'600}));
  EXPECT_EQ(times_of_additions(with_gap_of(0), 4, one_word),
            (std::vector<std::uint64_t>{1'000, 1'000, 1'000}));
}

TEST(SimNetwork, AtomicsOnSeveralWordsDoNotWaitForEachOther) {
  EXPECT_EQ(times_of_additions(with_gap_of(300), 4, [](Rank r) { return 8 * r; }),
            (std::vector<std::uint64_t>{1'000, 1'000, 1'000}));
  // Nodes 1 and 3 share a word, in the line of the other one.
  EXPECT_EQ(times_of_additions(with_gap_of(300), 4, [](Rank r) { return 8 * (r % 2); }),
            (std::vector<std::uint64_t>{1'000, 1'000, 1'300}));
}

TEST(SimNetwork, AWordIsFreeAgainAfterTheGap) {
  TestWorld t(with_gap_of(300), 3);
  t.settle();
  for (std::uint64_t count = 1; count <= 3; ++count) {
    const Rank sender = 1 + count % 2;
    t.post(sender, fetch_add(0, t.id(sender), 8, 1, nullptr));
    EXPECT_EQ(t.time_until([&] { return t.load(0, 8) == count; }), 1'000U) << count;
  }
}

/// More words than a NIC remembers at once: those that are busy are not forgotten. The additions of
/// node 2 wait for node 1's at the same words, and so for each other, but no addition of node 1
/// does.
TEST(SimNetwork, ManyWordsKeepTheirGap) {
  constexpr std::uint64_t kWords = 1'000;
  TestWorld t(with_gap_of(50'000), 3);
  t.settle();
  for (std::uint64_t word = 0; word < kWords; ++word)
    for (const Rank sender : {1U, 2U})
      t.post(sender, fetch_add(0, t.id(sender), word * 8, 1, nullptr));
  const auto sum = [&] {
    std::uint64_t all = 0;
    for (std::uint64_t word = 0; word < kWords; ++word) all += t.load(0, word * 8);
    return all;
  };
  EXPECT_EQ(t.time_until([&] { return sum() == kWords; }), 1'000U);
  EXPECT_EQ(t.time_until([&] { return sum() > kWords; }), 50'000U);
  EXPECT_EQ(t.time_until([&] { return sum() == 2 * kWords; }), 0U);
}

TEST(SimNetwork, AWriteBehindAnAtomicWaitsForItsWord) {
  TestWorld t(with_gap_of(50'000), 3);
  t.settle();
  const std::uint64_t value = 7;
  t.post(1, fetch_add(0, t.id(1), 0, 1, nullptr));
  EXPECT_EQ(t.time_until([&] { return t.load(0) == 1; }), 1'000U);
  t.post(2, fetch_add(0, t.id(2), 0, 1, nullptr));
  t.post(2, write(0, t.id(2), 8, &value, 8));
  t.post(2, write(0, t.id(2), 16, &value, 8));
  t.post(1, write(0, t.id(1), 24, &value, 8));
  EXPECT_EQ(t.time_until([&] { return t.load(0, 24) == 7; }), 1'000U);
  EXPECT_EQ(t.time_until([&] { return t.load(0) == 2; }), 49'000U);
  EXPECT_EQ(t.load(0, 8), 0U) << "FAB-F1: a write is not seen before an earlier atomic";
  EXPECT_EQ(t.time_until([&] { return t.load(0, 8) == 7; }), 0U);
  EXPECT_EQ(t.load(0, 16), 0U);
  EXPECT_EQ(t.time_until([&] { return t.load(0, 16) == 7; }), 0U);
}

/// The CPU's atomics have no such gap.
TEST(SimNetwork, AGapIsOfNativeAtomicsOnly) {
  Profile figures = with_gap_of(300'000);
  figures.native_atomics = false;
  for (const std::uint64_t time : times_of_additions(figures, 3, [](Rank) { return 8; }))
    EXPECT_LT(time, 2'000U);
}

TEST(SimNetwork, AGapIsNotNegative) { EXPECT_THROW(World(with_gap_of(-1), 2, 1), Error); }

TEST(SimNetwork, ThePacketIsHeldOnceOnItsWay) {
  Profile figures = ruler();
  figures.bus_bytes_per_ns = 2;
  figures.packet_bytes = 1024;
  TestWorld t(figures);
  t.settle();
  const auto source = numbers(512);
  t.post(0, put(1, t.id(0), 0, source.data(), 4096));
  // 1023 bytes of the first packet at half a nanosecond, and all 4095 on the wire.
  EXPECT_EQ(t.time_until([&] { return t.load(1, 4088) == 512; }), 1'000U + 511U + 4'095U);
}

TEST(SimNetwork, RacksAreFurtherApart) {
  Profile figures = ruler();
  figures.racks = 2;
  figures.cross_rack_latency = 2;
  figures.cross_rack_bandwidth = 0.5;
  TestWorld t(figures, 3);
  t.settle();
  const auto source = numbers(128);
  t.post(0, put(2, t.id(0), 0, source.data(), 1024));
  EXPECT_EQ(t.time_until([&] { return t.load(2, 1016) == 128; }), 1'000U + 1'023U);
  t.settle();
  t.post(0, put(1, t.id(0), 0, source.data(), 1024));
  EXPECT_EQ(t.time_until([&] { return t.load(1, 1016) == 128; }), 2'000U + 2U * 1'023U);
}

TEST(SimNetwork, ASlowLinkSlowsOnlyItself) {
  TestWorld t(ruler(), 3);
  t.settle();
  t.world.slow_link(0, 1, 10);
  alignas(8) const std::uint8_t one = 1;
  const std::uint64_t start = t.world.now_ns();
  t.post(0, write(1, t.id(0), 0, &one, 1));
  t.post(0, write(2, t.id(0), 0, &one, 1));
  t.time_until([&] { return t.load(2) == 1; });
  EXPECT_EQ(t.world.now_ns() - start, 1'020U);
  t.time_until([&] { return t.load(1) == 1; });
  EXPECT_EQ(t.world.now_ns() - start, 10'000U);
}

TEST(SimNetwork, JitterVariesTheLatencyByAtMostItsFraction) {
  Profile figures = plain();
  figures.jitter = 0.3;
  TestWorld t(figures);
  std::set<std::uint64_t> seen;
  for (std::uint64_t round = 1; round <= 200; ++round) {
    t.settle();
    t.post(0, write(1, t.id(0), 0, &round, 8));
    const std::uint64_t took = t.time_until([&] { return t.load(1) == round; });
    EXPECT_GE(took, 700U);
    EXPECT_LE(took, 1'300U);
    seen.insert(took);
  }
  EXPECT_GT(seen.size(), 100U);
  EXPECT_LT(*seen.begin(), 750U);
  EXPECT_GT(*seen.rbegin(), 1'250U);
}

TEST(SimNetwork, JitterDoesNotReorderWhatIsOrdered) {
  Profile figures = plain();
  figures.jitter = 0.9;
  TestWorld t(figures);
  std::uint64_t last = 0;
  bool went_back = false;
  t.world.attach(1, [&] {
    const std::uint64_t now = t.load(1);
    went_back = went_back || now < last;
    return std::exchange(last, now) != now ? 1 : 0;
  });
  for (std::uint64_t i = 1; i <= 500; ++i) t.post(0, write(1, t.id(0), 0, &i, 8));
  t.settle();
  EXPECT_EQ(last, 500U);
  EXPECT_FALSE(went_back);
}

// --- sources -------------------------------------------------------------------------------------

TEST(SimSources, ASmallOneIsTakenAtOnce) {
  TestWorld t(ruler());
  std::uint64_t value = 1;
  t.post(0, write(1, t.id(0), 0, &value, 8));
  value = 2;
  t.settle();
  EXPECT_EQ(t.load(1), 1U);
}

TEST(SimSources, ALargeOneIsReadWhenTheNicSendsIt) {
  TestWorld t(ruler());
  auto source = numbers(64);
  t.post(0, write(1, t.id(0), 0, source.data(), 512));  // leaves at once, for 512 ns
  t.post(0, write(1, t.id(0), 512, source.data(), 512));
  t.world.run_for(100);
  source[0] = 99;
  t.settle();
  EXPECT_EQ(t.load(1, 0), 1U);
  EXPECT_EQ(t.load(1, 512), 99U) << "changing a source too early must show";
}

TEST(SimSources, MayGoWithTheirRegion) {
  TestWorld t(ruler());
  auto rows = t.world.fabric(0).allocate({.name = "rows", .bytes = 4096});
  memory::store(*reinterpret_cast<std::uint64_t*>(rows.memory().data()), 5);
  for (int i = 0; i < 3; ++i) t.post(0, write(1, t.id(0), 0, rows.memory().data(), 4096));
  rows = {};
  t.settle();
  EXPECT_EQ(t.load(1), 5U);
}

TEST(SimSources, AbandonedOperationsTouchNothingOfTheirs) {
  TestWorld t(ruler());
  t.settle();
  auto here = std::make_unique<std::array<std::uint64_t, 64>>();
  auto done = std::make_unique<Completion>();
  t.post(0, read(1, t.id(0), 0, here->data(), 512).notify(*done));
  t.post(0, write(1, t.id(0), 0, here->data(), 512).notify(*done));
  t.world.run_for(10);
  t.world.fabric(0).abandon(*done);
  EXPECT_TRUE(done->finished());
  here.reset();
  done.reset();
  t.settle();
  EXPECT_EQ(t.load(1), 0U);
}

}  // namespace
}  // namespace dunlin::sim

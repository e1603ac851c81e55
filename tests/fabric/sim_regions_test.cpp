#include <optional>
#include <string>
#include <vector>

#include "fabric/sim_world.hpp"

/// What nodes learn of each other's regions, and what becomes of operations on those that go.
namespace dunlin::sim {
namespace {

struct Seen {
  Event::Kind kind;
  Rank peer;
  RegionId region;
  std::string text;
};

struct Listener {
  std::vector<Seen> events;
  Subscription subscription;
  explicit Listener(Fabric& fabric)
      : subscription(fabric.subscribe([this](const Event& e) {
          events.push_back({e.kind, e.peer, e.region, std::string(e.text)});
        })) {}
  [[nodiscard]] std::size_t count(Event::Kind kind) const {
    std::size_t n = 0;
    for (const Seen& event : events) n += event.kind == kind ? 1 : 0;
    return n;
  }
};

TEST(SimRegions, AreKnownAfterTheAnnouncementHasTravelled) {
  TestWorld t(plain());
  t.settle();
  const Listener listener(t.world.fabric(0));
  const Region here = t.world.fabric(0).allocate({.name = "late", .bytes = 64});
  const Region there = t.world.fabric(1).allocate({.name = "late", .bytes = 64});
  t.settle();
  EXPECT_FALSE(t.world.fabric(0).connected(1, here.id()));
  t.world.fabric(1).announce(there);
  const auto took = t.time_until([&] { return t.world.fabric(0).connected(1, here.id()); });
  EXPECT_GE(took, 1'000U);
  EXPECT_LE(took, 1'020U);
  ASSERT_EQ(listener.events.size(), 1U);
  EXPECT_EQ(listener.events[0].kind, Event::Kind::region_connected);
  EXPECT_EQ(listener.events[0].peer, 1U);
  EXPECT_EQ(listener.events[0].region, here.id());
  EXPECT_FALSE(t.world.fabric(1).connected(0, there.id())) << "it goes one way";
}

TEST(SimRegions, MayBeAnnouncedBeforeThePeerHasThem) {
  TestWorld t(plain());
  const Region there = t.world.fabric(1).allocate({.name = "early", .bytes = 64});
  t.world.fabric(1).announce(there);
  t.settle();
  const Region here = t.world.fabric(0).allocate({.name = "early", .bytes = 64});
  t.time_until([&] { return t.world.fabric(0).connected(1, here.id()); });
}

TEST(SimRegions, AnEarlyAnnouncementThatIsWithdrawnLeavesNothing) {
  TestWorld t(plain());
  Region there = t.world.fabric(1).allocate({.name = "early", .bytes = 64});
  t.world.fabric(1).announce(there);
  t.settle();
  there = {};
  t.settle();
  const Region here = t.world.fabric(0).allocate({.name = "early", .bytes = 64});
  t.settle();
  EXPECT_FALSE(t.world.fabric(0).connected(1, here.id()));
}

TEST(SimRegions, OfAnotherGenerationAreOthers) {
  TestWorld t(plain());
  const Region here = t.world.fabric(0).allocate({.name = "view", .bytes = 64, .generation = 2});
  const Region there = t.world.fabric(1).allocate({.name = "view", .bytes = 64, .generation = 3});
  t.world.fabric(1).announce(there);
  t.settle();
  EXPECT_FALSE(t.world.fabric(0).connected(1, here.id()));
}

TEST(SimRegions, OfAnotherLayoutAreRefusedWithBothSidesNamed) {
  TestWorld t(plain());
  const Listener listener(t.world.fabric(0));
  const Region here = t.world.fabric(0).allocate(
      {.name = "rows", .bytes = 64, .layout_hash = 1, .layout_text = "step: i32"});
  const Region there = t.world.fabric(1).allocate(
      {.name = "rows", .bytes = 64, .layout_hash = 2, .layout_text = "step: f64"});
  t.world.fabric(1).announce(there);
  t.settle();
  EXPECT_FALSE(t.world.fabric(0).connected(1, here.id()));
  ASSERT_EQ(listener.events.size(), 1U);
  EXPECT_EQ(listener.events[0].kind, Event::Kind::region_refused);
  for (const char* part : {"rows", "node0", "'i32' here", "node1", "'f64' there"})
    EXPECT_NE(listener.events[0].text.find(part), std::string::npos) << listener.events[0].text;
}

TEST(SimRegions, ThatOnlyObserversSeeAreNotForPeers) {
  TestWorld t(plain());
  const Region here = t.world.fabric(0).publish({.name = "stats", .bytes = 64});
  const Region there = t.world.fabric(1).allocate({.name = "stats", .bytes = 64});
  t.world.fabric(1).announce(there);
  t.settle();
  EXPECT_FALSE(t.world.fabric(1).connected(0, there.id()));
}

TEST(SimRegions, OperationsUnderWayToAReleasedOneFailAndTouchNothing) {
  TestWorld t(plain());
  const Listener listener(t.world.fabric(0));
  t.settle();
  const std::uint64_t value = 1;
  std::uint64_t here = 5;
  Completion write_done;
  Completion read_done;
  Completion add_done;
  const auto start = t.world.now_ns();
  t.world.at(start + 500, [&] { t.boxes[1] = {}; });
  t.post(0, write(1, t.id(0), 0, &value, 8).notify(write_done, Notify::remotely));
  t.post(0, read(1, t.id(0), 0, &here, 8).notify(read_done));
  t.post(0, fetch_add(1, t.id(0), 0, 1, &here).notify(add_done));
  t.time_until(
      [&] { return write_done.finished() && read_done.finished() && add_done.finished(); });
  EXPECT_TRUE(write_done.failed());
  EXPECT_TRUE(read_done.failed());
  EXPECT_TRUE(add_done.failed());
  EXPECT_EQ(write_done.failed_peer(), 1U);
  EXPECT_EQ(here, 5U);
  t.settle();
  EXPECT_EQ(listener.count(Event::Kind::region_withdrawn), 1U);
  EXPECT_EQ(t.world.fabric(0).post(write(1, t.id(0), 0, &value, 8)).refusal,
            Refusal::not_connected);
  EXPECT_FALSE(t.world.fabric(0).failed(1)) << "the peer itself is well";
}

TEST(SimRegions, AnotherRegionInThePlaceOfAReleasedOneIsNotHit) {
  TestWorld t(plain());
  t.settle();
  const std::uint64_t value = 1;
  std::vector<Region> others;
  const auto start = t.world.now_ns();
  t.world.at(start + 500, [&] {
    t.boxes[1] = {};
    // Enough to take every slot, the released one among them.
    for (std::size_t i = 0; i + 1 < kMaxRegions; ++i)
      others.push_back(t.world.fabric(1).allocate({.name = "other", .bytes = 64}));
  });
  t.post(0, write(1, t.id(0), 0, &value, 8));
  t.settle();
  for (const Region& other : others)
    ASSERT_EQ(*reinterpret_cast<const std::uint64_t*>(other.memory().data()), 0U);
}

TEST(SimRegions, ALargeWriteStopsWhereTheRegionIsReleased) {
  Profile figures = plain();
  figures.bandwidth_bytes_per_ns = 1;
  TestWorld t(figures);
  t.settle();
  const std::vector<std::uint64_t> source(4'096, 1);
  Completion done;
  const auto start = t.world.now_ns();
  t.world.at(start + 2'000, [&] { t.boxes[1] = {}; });
  t.post(0, write(1, t.id(0), 0, source.data(), source.size() * 8).notify(done));
  t.time_until([&] { return done.finished(); });
  EXPECT_TRUE(done.failed());
}

TEST(SimRegions, ThatNeverWereTakeNoOperation) {
  TestWorld t(plain());
  const std::uint64_t value = 1;
  for (const std::uint32_t index : {t.id(0).index + 1, kMaxRegions - 1, kMaxRegions}) {
    EXPECT_EQ(t.world.fabric(0).post(write(1, {index}, 0, &value, 8)).refusal,
              Refusal::unknown_region)
        << index;
    EXPECT_FALSE(t.world.fabric(0).connected(1, {index})) << index;
  }
}

TEST(SimRegions, ThatAreForObserversTakeNoOperation) {
  TestWorld t(plain());
  const Region shown = t.world.fabric(0).publish({.name = "shown", .bytes = 64});
  const std::uint64_t value = 1;
  EXPECT_EQ(t.world.fabric(0).post(write(1, shown.id(), 0, &value, 8)).refusal,
            Refusal::not_connected);
}

/// A region takes another place than those before it, in turn, and is told of in that place.
TEST(SimRegions, TakeEachPlaceInTurn) {
  TestWorld t(plain());
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < kMaxRegions + 10; ++i) {
    const Region here = t.world.fabric(0).allocate({.name = "one", .bytes = 64, .generation = 1});
    const Region there = t.world.fabric(1).allocate({.name = "one", .bytes = 64, .generation = 1});
    ASSERT_NE(here.id().index, last);
    last = here.id().index;
    if (i % 512 != 0) continue;
    t.world.fabric(1).announce(there);
    t.time_until([&] { return t.world.fabric(0).connected(1, here.id()); });
  }
}

TEST(SimRegions, OfAWorldThatEndsAreNotWithdrawn) {
  TestWorld t(plain(), 3);
  t.settle();
  const Listener listener(t.world.fabric(0));
  t.world.end();
  t.boxes.clear();
  const std::uint64_t digest = t.world.digest();
  t.world.run_for(10'000'000);
  EXPECT_EQ(t.world.digest(), digest) << "something was sent";
  EXPECT_TRUE(listener.events.empty());
  EXPECT_FALSE(t.world.fabric(0).failed(1));
}

}  // namespace
}  // namespace dunlin::sim

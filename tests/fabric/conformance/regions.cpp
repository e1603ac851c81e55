#include <array>
#include <string>

#include "fabric/conformance/expect_error.hpp"
#include "fabric/conformance/harness.hpp"
#include "fabric/conformance/pattern.hpp"

/// Who is connected to whose memory, and who learns of it.
namespace dunlin::conformance {

namespace {

using Kind = Event::Kind;

const std::uint64_t& word_of(const Region& region) {
  return *reinterpret_cast<const std::uint64_t*>(region.memory().data());
}

}  // namespace

TEST_P(Regions, AreConnectedWhetherAnnouncedBeforeOrAfterThePeerAllocates) {
  start(2);
  const Region& mine = group().allocate(0, {.name = "box", .bytes = 64});
  node(0).announce(mine);
  let_time_pass();
  EXPECT_EQ(seen(1, Kind::region_connected, 0), 0U);
  const Region& theirs = group().allocate(1, {.name = "box", .bytes = 64});
  until("the late one is connected", [&] { return node(1).connected(0, theirs.id()); });
  until("it is told so", [&] { return seen(1, Kind::region_connected, 0, theirs.id()) == 1; });
  EXPECT_FALSE(node(0).connected(1, mine.id()));
  node(1).announce(theirs);
  until("the early one is connected", [&] { return node(0).connected(1, mine.id()); });
  until("it is told so", [&] { return seen(0, Kind::region_connected, 1, mine.id()) == 1; });
  let_time_pass();
  EXPECT_EQ(seen(0, Kind::region_connected, 1), 1U);
  EXPECT_EQ(seen(1, Kind::region_connected, 0), 1U);
}

TEST_P(Regions, ShowTheirFirstContentToWhoIsConnected) {
  start(2);
  Region& theirs = group().allocate(1, {.name = "box", .bytes = 4096});
  fill_pattern(theirs.memory(), 7);
  node(1).announce(theirs);
  const Region& mine = group().allocate(0, {.name = "box", .bytes = 64});
  until("it is connected", [&] { return node(0).connected(1, mine.id()); });
  alignas(8) std::array<std::byte, 4096> fetched{};
  post_and_finish(0, read(1, mine.id(), 0, fetched.data(), fetched.size()));
  EXPECT_TRUE(has_pattern(fetched, 7));
}

TEST_P(Regions, OfTheSameNameArePairedInTheOrderOfTheirAllocation) {
  start(2);
  const Region& a1 = group().allocate(0, {.name = "box", .bytes = 64});
  const Region& a2 = group().allocate(0, {.name = "box", .bytes = 64});
  const Region& b1 = group().allocate(1, {.name = "box", .bytes = 64});
  const Region& b2 = group().allocate(1, {.name = "box", .bytes = 64});
  node(0).announce(a2);
  node(0).announce(a1);
  node(1).announce(b1);
  node(1).announce(b2);
  until("all are connected", [&] {
    return node(0).connected(1, a1.id()) && node(0).connected(1, a2.id()) &&
           node(1).connected(0, b1.id()) && node(1).connected(0, b2.id());
  });
  const std::uint64_t one = 1;
  const std::uint64_t two = 2;
  post_and_finish(0, write(1, a1.id(), 0, &one, 8));
  post_and_finish(0, write(1, a2.id(), 0, &two, 8));
  EXPECT_EQ(memory::load(word_of(b1)), 1U);
  EXPECT_EQ(memory::load(word_of(b2)), 2U);
}

TEST_P(Regions, OfAStatedGenerationMeetOnlyTheSameGeneration) {
  start(2);
  const Region& mine = group().allocate(0, {.name = "box", .bytes = 64, .generation = 41});
  const Region& other = group().allocate(1, {.name = "box", .bytes = 64, .generation = 40});
  node(0).announce(mine);
  node(1).announce(other);
  let_time_pass();
  EXPECT_FALSE(node(0).connected(1, mine.id()));
  EXPECT_FALSE(node(1).connected(0, other.id()));
  const Region& same = group().allocate(1, {.name = "box", .bytes = 64, .generation = 41});
  node(1).announce(same);
  until("the equals are connected",
        [&] { return node(0).connected(1, mine.id()) && node(1).connected(0, same.id()); });
  EXPECT_FALSE(node(1).connected(0, other.id()));
  const std::uint64_t one = 1;
  post_and_finish(0, write(1, mine.id(), 0, &one, 8));
  EXPECT_EQ(memory::load(word_of(same)), 1U);
  EXPECT_EQ(memory::load(word_of(other)), 0U);
}

TEST_P(Regions, OfAnotherLayoutAreRefusedInWordsThatNameBothSides) {
  start(2);
  const Region& mine = group().allocate(
      0, {.name = "box", .bytes = 64, .layout_hash = 1, .layout_text = "speed f64"});
  const Region& theirs = group().allocate(
      1, {.name = "box", .bytes = 64, .layout_hash = 2, .layout_text = "colour u8"});
  node(0).announce(mine);
  node(1).announce(theirs);
  until("both have refused", [&] {
    return seen(0, Kind::region_refused, 1, mine.id()) == 1 &&
           seen(1, Kind::region_refused, 0, theirs.id()) == 1;
  });
  for (const Rank at : {0U, 1U}) {
    const std::string text = text_of(at, Kind::region_refused, 1 - at);
    EXPECT_NE(text.find("speed f64"), std::string::npos) << text;
    EXPECT_NE(text.find("colour u8"), std::string::npos) << text;
    EXPECT_NE(text.find("box"), std::string::npos) << text;
  }
  const std::uint64_t one = 1;
  EXPECT_FALSE(node(0).connected(1, mine.id()));
  EXPECT_EQ(node(0).post(write(1, mine.id(), 0, &one, 8)).refusal, Refusal::not_connected);
  EXPECT_EQ(seen(0, Kind::region_connected, 1), 0U);
  // The next generation is a new chance.
  share("box", 64);
}

TEST_P(Regions, OfAnotherLayoutAreRefusedWhetherAnnouncedBeforeOrAfter) {
  start(2);
  const Region& mine = group().allocate(0, {.name = "box", .bytes = 64, .layout_hash = 1});
  node(0).announce(mine);
  let_time_pass();
  const Region& theirs = group().allocate(1, {.name = "box", .bytes = 64, .layout_hash = 2});
  until("the late one has refused",
        [&] { return seen(1, Kind::region_refused, 0, theirs.id()) == 1; });
  node(1).announce(theirs);
  until("the early one has refused",
        [&] { return seen(0, Kind::region_refused, 1, mine.id()) == 1; });
}

TEST_P(Regions, AreReachedWhereTheyAreMapped) {
  start(2);
  const Shared box = share("box", 64);
  if (node(0).reach(1, box.id(0)).empty()) {
    EXPECT_FALSE(node(0).properties().reads_are_loads);
    GTEST_SKIP() << "no memory of a peer is mapped";
  }
  const std::span<std::byte> there = node(0).reach(1, box.id(0));
  ASSERT_EQ(there.size(), 64U);
  memory::store(*reinterpret_cast<std::uint64_t*>(there.data() + 8), 7);
  node(0).ring(1);
  EXPECT_EQ(box.load(1, 8), 7U);
  std::uint64_t before = 0;
  post_and_finish(0, fetch_add(1, box.id(0), 8, 1, &before));
  EXPECT_EQ(before, 7U);
  EXPECT_EQ(memory::load(*reinterpret_cast<const std::uint64_t*>(there.data() + 8)), 8U);
  EXPECT_EQ(node(0).reach(0, box.id(0)).size(), 64U);  // the own one, too

  const std::uint64_t disconnections = node(0).disconnections();
  let_time_pass();
  EXPECT_EQ(node(0).disconnections(), disconnections);  // so the address has stayed
  EXPECT_EQ(node(0).reach(1, box.id(0)).data(), there.data());
  group().release(1, box.id(1));
  until("it is withdrawn", [&] { return !node(0).connected(1, box.id(0)); });
  EXPECT_NE(node(0).disconnections(), disconnections);
  EXPECT_TRUE(node(0).reach(1, box.id(0)).empty());
}

TEST_P(Regions, AreNotReachedOnceTheirMemberCountsAsFailed) {
  start(2);
  const Shared box = share("box", 64);
  const std::uint64_t disconnections = node(0).disconnections();
  node(0).expel(1, "for a test");
  EXPECT_NE(node(0).disconnections(), disconnections);
  EXPECT_TRUE(node(0).reach(1, box.id(0)).empty());
}

TEST_P(Regions, OfTheSameLayoutAndAnotherSizeAreWelcome) {
  start(2);
  const Region& mine = group().allocate(0, {.name = "box", .bytes = 64, .layout_hash = 5});
  const Region& theirs = group().allocate(1, {.name = "box", .bytes = 128, .layout_hash = 5});
  node(0).announce(mine);
  node(1).announce(theirs);
  until("both are connected",
        [&] { return node(0).connected(1, mine.id()) && node(1).connected(0, theirs.id()); });
}

TEST_P(Regions, ThatAreReleasedAreWithdrawnFromEveryPeer) {
  start(3);
  const Shared box = share("box", 64);
  const RegionId released = box.id(0);
  group().release(0, released);
  until("both peers are told", [&] {
    return seen(1, Kind::region_withdrawn, 0, box.id(1)) == 1 &&
           seen(2, Kind::region_withdrawn, 0, box.id(2)) == 1;
  });
  const std::uint64_t one = 1;
  EXPECT_FALSE(node(1).connected(0, box.id(1)));
  EXPECT_EQ(node(1).post(write(0, box.id(1), 0, &one, 8)).refusal, Refusal::not_connected);
  EXPECT_EQ(node(0).post(write(1, released, 0, &one, 8)).refusal, Refusal::unknown_region);
  // The others keep theirs.
  post_and_finish(1, write(2, box.id(1), 0, &one, 8));
  EXPECT_EQ(box.load(2, 0), 1U);
  EXPECT_EQ(seen(1, Kind::region_withdrawn, 2), 0U);
}

TEST_P(Regions, ThatWereNeverAnnouncedAreReleasedInSilence) {
  start(2);
  const Region& mine = group().allocate(0, {.name = "box", .bytes = 64});
  node(0).announce(mine);
  const Region& theirs = group().allocate(1, {.name = "box", .bytes = 64});
  group().release(1, theirs.id());
  let_time_pass();
  EXPECT_EQ(seen(0, Kind::region_withdrawn, 1), 0U);
  EXPECT_EQ(seen(0, Kind::region_connected, 1), 0U);
}

TEST_P(Regions, AllocatedAnewNeverMeetThoseOfBefore) {
  start(2);
  const Shared old = share("box", 64);
  const std::uint64_t one = 1;
  const std::uint64_t two = 2;
  post_and_finish(0, write(1, old.id(0), 0, &one, 8));
  const RegionId old_theirs = old.id(1);
  group().release(1, old_theirs);
  const Region& anew = group().allocate(1, {.name = "box", .bytes = 64});
  node(1).announce(anew);
  EXPECT_EQ(memory::load(word_of(anew)), 0U);
  until("the old one is withdrawn",
        [&] { return seen(0, Kind::region_withdrawn, 1, old.id(0)) == 1; });
  let_time_pass();
  EXPECT_FALSE(node(0).connected(1, old.id(0)));
  EXPECT_FALSE(node(1).connected(0, anew.id()));
  EXPECT_EQ(node(0).post(write(1, old.id(0), 0, &two, 8)).refusal, Refusal::not_connected);
  const Region& mine = group().allocate(0, {.name = "box", .bytes = 64});
  node(0).announce(mine);
  until("the new ones are connected",
        [&] { return node(0).connected(1, mine.id()) && node(1).connected(0, anew.id()); });
  EXPECT_EQ(memory::load(word_of(anew)), 0U);
  post_and_finish(0, write(1, mine.id(), 0, &two, 8));
  EXPECT_EQ(memory::load(word_of(anew)), 2U);
}

TEST_P(Regions, WithdrawnUnderOperationsInFlightDoNoHarm) {
  start(2);
  const Shared guard = share("guard", 4096);
  for (int round = 0; round < 30; ++round) {
    const Shared box = share("box", 4096);
    std::array<std::byte, 4096> source;
    source.fill(std::byte{0xff});
    Completion done;
    for (int i = 0; i < 4; ++i) {
      post(0, put(1, box.id(0), 0, source.data(), source.size()).notify(done, Notify::remotely));
    }
    group().release(1, box.id(1));
    const Region& next = group().allocate(1, {.name = "next", .bytes = 4096});
    until_finished(done);
    for (const std::byte b : next.memory()) ASSERT_EQ(b, std::byte{0});
    group().release(0, box.id(0));
    group().release(1, next.id());
  }
  for (std::size_t at = 0; at < 4096; at += 8) ASSERT_EQ(guard.load(1, at), 0U);
}

TEST_P(Regions, AreReachedByTheirOwnNodeAsByAPeer) {
  start(2);
  const Shared box = share("box", 4096);
  std::uint64_t before = 0;
  std::uint64_t fetched = 0;
  const std::uint64_t value = 6;
  std::array<std::byte, 100> source{};
  fill_pattern(source, 2);
  post_and_finish(0, write(0, box.id(0), 0, &value, 8));
  post_and_finish(0, fetch_add(0, box.id(0), 0, 4, &before));
  EXPECT_EQ(before, 6U);
  post_and_finish(0, compare_swap(0, box.id(0), 0, 10, 11, &before));
  EXPECT_EQ(before, 10U);
  post_and_finish(0, read(0, box.id(0), 0, &fetched, 8));
  EXPECT_EQ(fetched, 11U);
  post_and_finish(0, put(0, box.id(0), 65, source.data(), source.size()));
  EXPECT_TRUE(has_pattern({box.memory(0) + 65, source.size()}, 2));
  EXPECT_EQ(node(0).post(write(0, box.id(0), 4096, &value, 8)).refusal, Refusal::out_of_bounds);
}

TEST_P(Regions, OfOneNodeMayBeAnnouncedTwice) {
  start(2);
  const Shared box = share("box", 64);
  const Region& late = group().allocate(0, {.name = "late", .bytes = 64});
  node(0).announce(late);
  node(0).announce(late);
  const Region& theirs = group().allocate(1, {.name = "late", .bytes = 64});
  until("it is connected", [&] { return node(1).connected(0, theirs.id()); });
  let_time_pass();
  EXPECT_EQ(seen(1, Kind::region_connected, 0, theirs.id()), 1U);
}

TEST_P(Regions, ThatArePublishedAreNotForPeers) {
  start(2);
  const Region board = node(0).publish({.name = "board", .bytes = 64});
  const Region& theirs = group().allocate(1, {.name = "board", .bytes = 64});
  node(1).announce(theirs);
  let_time_pass();
  EXPECT_FALSE(node(0).connected(1, board.id()));
  EXPECT_EQ(seen(0, Kind::region_connected, 1, board.id()), 0U);
}

TEST_P(Regions, OfANameInUseNeedAnotherGeneration) {
  start(2);
  group().allocate(0, {.name = "box", .bytes = 64, .generation = 5});
  expect_error([&] { group().allocate(0, {.name = "box", .bytes = 64, .generation = 5}); },
               "generation");
}

}  // namespace dunlin::conformance

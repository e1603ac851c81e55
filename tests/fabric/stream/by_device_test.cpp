#include <chrono>

#include <gtest/gtest.h>

#include "fabric/conformance/expect_error.hpp"
#include "fabric/stream/scripted_device.hpp"

/// Which way an operation goes, who is woken, and how long memory is kept (STR-R1, STR-R2, STR-B1
/// to STR-B4 of docs/verbs.md): with devices that do what the test lets them.
namespace dunlin::stream {
namespace {

using test::Bytes;
using test::FrameBuilder;
using test::PeerWithDevices;
using test::ScriptedPeer;

constexpr std::uint32_t kBox = kMaxRegions;

// --- which way -----------------------------------------------------------------------------------

TEST(ByDevice, GoesWhatTheDevicePromisesAndNothingElse) {
  PeerWithDevices peer;
  peer.reach.able.partial_words = false;
  std::uint64_t word = 1;
  ASSERT_TRUE(peer.fabric->post(peer.word()).all());
  ASSERT_TRUE(peer.fabric->post(put(1, peer.box.id(), 1, &word, 3)).all());
  ASSERT_TRUE(peer.fabric->post(read(1, peer.box.id(), 8, &word, 8)).all());
  ASSERT_TRUE(peer.fabric->post(fetch_add(1, peer.box.id(), 16, 1, &word)).all());
  EXPECT_EQ(peer.reach.operations.size(), 4U);
  EXPECT_TRUE(peer.transport->outgoing.empty());
  const std::array<std::byte, 200> large{};
  ASSERT_TRUE(peer.fabric->post(put(1, peer.box.id(), 0, large.data(), large.size())).all());
  ASSERT_TRUE(peer.fabric->post(write(1, peer.box.id(), 0, &word, 4)).all());
  EXPECT_EQ(peer.reach.operations.size(), 4U);
  EXPECT_EQ(peer.heard(EntryKind::put).size(), 1U);
  EXPECT_EQ(peer.heard(EntryKind::write).size(), 1U);
}

/// STR-B1, STR-B3.
TEST(ByDevice, NothingThatMayBeSeenOvertakesAFrameThatIsNotAnswered) {
  PeerWithDevices peer;
  peer.reach.able.partial_words = false;
  std::uint64_t word = 1;
  ASSERT_TRUE(peer.fabric->post(write(1, peer.box.id(), 0, &word, 4)).all());
  ASSERT_EQ(peer.heard(EntryKind::write).size(), 1U);
  EXPECT_EQ(peer.heard(EntryKind::write)[0].flags, kAsks);
  ASSERT_TRUE(peer.fabric->post(peer.word()).all());
  EXPECT_EQ(peer.heard(EntryKind::write).size(), 2U);
  Completion fetched;
  ASSERT_TRUE(peer.fabric->post(read(1, peer.box.id(), 8, &word, 8).notify(fetched)).all());
  EXPECT_EQ(peer.heard(EntryKind::read).size(), 1U);
  EXPECT_EQ(peer.fabric->post(fetch_add(1, peer.box.id(), 16, 1, nullptr)).refusal,
            Refusal::queue_full);
  EXPECT_TRUE(peer.reach.operations.empty());
  ASSERT_TRUE(peer.fabric->post(put(1, peer.box.id(), 0, &word, 8)).all());
  EXPECT_EQ(peer.reach.operations.size(), 1U) << "nobody looks at a put yet";

  peer.say({.kind = EntryKind::placed, .value = 1});
  ASSERT_TRUE(peer.fabric->post(peer.word()).all());
  EXPECT_EQ(peer.heard(EntryKind::write).size(), 3U) << "the second and the read are not answered";
  peer.say({.kind = EntryKind::placed, .value = 3});
  peer.say({.kind = EntryKind::bytes, .value = 8}, Bytes(8));
  EXPECT_TRUE(fetched.finished());
  ASSERT_TRUE(peer.fabric->post(peer.word()).all());
  ASSERT_TRUE(peer.fabric->post(fetch_add(1, peer.box.id(), 16, 1, nullptr)).all());
  EXPECT_EQ(peer.heard(EntryKind::write).size(), 3U);
  EXPECT_EQ(peer.reach.operations.size(), 3U);
}

/// STR-B2.
TEST(ByDevice, ASignalLeavesBehindTheFramesBeforeIt) {
  PeerWithDevices peer;
  peer.transport->busy = true;  // so that the message waits for the next poll()
  ASSERT_EQ(peer.fabric->send(1, 0, {}), Refusal::none);
  ASSERT_TRUE(peer.transport->outgoing.empty());
  std::size_t frames_before = 0;
  peer.reach.on_start = [&](const Operation&) { frames_before = peer.transport->outgoing.size(); };
  ASSERT_TRUE(peer.fabric->post(peer.word()).all());
  EXPECT_EQ(frames_before, 1U);
  EXPECT_EQ(peer.heard(EntryKind::message).size(), 1U);

  peer.transport->free_buffers = 0;
  peer.say({.kind = EntryKind::dozing, .value = 1});  // the answer waits for a buffer
  EXPECT_EQ(peer.fabric->post(peer.word()).refusal, Refusal::queue_full);
  EXPECT_EQ(peer.reach.operations.size(), 1U);
  peer.transport->free_buffers = UINT32_MAX;
  EXPECT_TRUE(peer.fabric->post(peer.word()).all());
  EXPECT_EQ(peer.heard(EntryKind::noted).size(), 1U);
}

TEST(ByDevice, AFullDevicePushesBack) {
  PeerWithDevices peer;
  Completion done;
  peer.reach.full = true;
  EXPECT_EQ(peer.fabric->post(peer.word().notify(done, Notify::remotely)).refusal,
            Refusal::queue_full);
  EXPECT_TRUE(done.finished());
  peer.reach.full = false;
  ASSERT_TRUE(peer.fabric->post(peer.word().notify(done, Notify::remotely)).all());
  EXPECT_FALSE(done.finished());
  peer.transport->also = [&](Receiver& receiver) { receiver.take_finished(1, done, true); };
  EXPECT_EQ(peer.fabric->poll(), 1U);
  EXPECT_TRUE(done.finished());
  EXPECT_FALSE(done.failed());
}

// --- failures ------------------------------------------------------------------------------------

TEST(ByDevice, WhatIsUnderWayToAFailedPeerCompletesWithAnError) {
  PeerWithDevices peer;
  Completion done;
  std::uint64_t word = 1;
  ASSERT_TRUE(peer.fabric->post(read(1, peer.box.id(), 8, &word, 8).notify(done)).all());
  peer.transport->end = "its connection closed";
  peer.fabric->poll();
  peer.expect_failed("connection closed");
  EXPECT_TRUE(done.failed());
  EXPECT_EQ(done.failed_peer(), 1U);
}

/// Our own atomics go over a connection to ourselves, which can break like any other.
TEST(ByDevice, AConnectionToOurselvesThatBreaksIsAFailureLikeAnyOther) {
  PeerWithDevices peer;
  int told = 0;
  const auto events = peer.fabric->subscribe([&](const Event& event) {
    if (event.kind == Event::Kind::peer_failed && event.peer == 0) ++told;
  });
  Completion done;
  std::uint64_t before = 5;
  const Operation add = fetch_add(0, peer.box.id(), 0, 1, &before).notify(done);
  ASSERT_TRUE(peer.fabric->post(add).all());
  ASSERT_FALSE(done.finished());
  peer.reach.full = true;  // a broken queue takes nothing
  peer.transport->also = [](Receiver& receiver) { receiver.take_end(0, "the device is gone"); };
  peer.fabric->poll();
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(done.finished());
  EXPECT_EQ(done.failures(), 1U);
  EXPECT_EQ(done.failed_peer(), 0U);
  EXPECT_NE(peer.fabric->failure_text(0).find("the device is gone"), std::string::npos);

  ASSERT_TRUE(peer.fabric->post(add).all());
  EXPECT_EQ(done.failures(), 2U);
  const Region later = peer.fabric->allocate({.name = "later", .bytes = 64});
  peer.fabric->announce(later);
  Completion next;
  ASSERT_TRUE(peer.fabric->post(fetch_add(0, later.id(), 0, 1, nullptr).notify(next)).all());
  EXPECT_TRUE(next.failed());
  EXPECT_EQ(before, 5U);
  EXPECT_FALSE(peer.fabric->failed(1)) << "the others are none the worse";
  peer.reach.full = false;
  EXPECT_TRUE(peer.fabric->post(peer.word()).all());
}

/// What the device does is nothing that the peer hears.
TEST(ByDevice, BeatsThoughTheDeviceIsBusy) {
  PeerWithDevices peer(false);
  Hello words = ScriptedPeer::right_hello();
  words.silence_timeout_ms = 4;
  peer.say(ScriptedPeer::hello(words));
  peer.meet();
  const auto begun = std::chrono::steady_clock::now();
  while (peer.heard(EntryKind::beat).size() < 3) {
    ASSERT_LT(std::chrono::steady_clock::now() - begun, std::chrono::minutes(1)) << "no beat";
    ASSERT_TRUE(peer.fabric->post(peer.word()).all());
    peer.fabric->poll();
  }
  EXPECT_GT(peer.reach.operations.size(), 3U);
  for (const Bytes& frame : peer.transport->outgoing) EXPECT_EQ(frame.size(), sizeof(EntryHead));
}

// --- memory --------------------------------------------------------------------------------------

/// STR-R2, of memory that a peer may be writing to.
TEST(ByDevice, AReleasedRegionIsKeptUntilThePeerHasLetGo) {
  PeerWithDevices peer;
  const std::byte* const memory = peer.box.memory().data();
  ASSERT_TRUE(peer.is_reachable(memory));
  peer.box = Region();
  peer.fabric->poll();
  ASSERT_EQ(peer.heard(EntryKind::withdraw).size(), 1U);
  EXPECT_TRUE(peer.is_reachable(memory));
  EXPECT_EQ(*memory, std::byte{0}) << "it is still mapped";
  peer.say({.kind = EntryKind::let_go, .region = kBox});
  EXPECT_FALSE(peer.is_reachable(memory));
  peer.say({.kind = EntryKind::let_go, .region = kBox});
  peer.expect_failed("not withdrawn");
}

/// STR-R2, of memory that our own device may be reading from: the peer has heard of the withdrawal,
/// and so of all before it, but our device does not know that yet, and may send it again.
TEST(ByDevice, AReleasedRegionIsKeptUntilTheWritesFromItAreFinished) {
  PeerWithDevices peer;
  const std::byte* const memory = peer.box.memory().data();
  ASSERT_TRUE(peer.fabric->post(put(1, peer.box.id(), 0, memory, 100)).all());
  peer.box = Region();
  peer.say({.kind = EntryKind::let_go, .region = kBox});
  EXPECT_TRUE(peer.is_reachable(memory));
  EXPECT_EQ(*memory, std::byte{0}) << "it is still mapped";
  peer.say({.kind = EntryKind::beat});
  EXPECT_TRUE(peer.is_reachable(memory));
  EXPECT_FALSE(peer.fabric->failed(1));
  peer.reach.finish_all();
  peer.fabric->poll();
  EXPECT_FALSE(peer.is_reachable(memory));
}

/// STR-R2, of memory that our own atomics go to.
TEST(ByDevice, AReleasedRegionIsKeptUntilOurOwnAtomicsAreFinished) {
  PeerWithDevices peer;
  const std::byte* const memory = peer.box.memory().data();
  ASSERT_TRUE(peer.fabric->post(fetch_add(0, peer.box.id(), 0, 1, nullptr)).all());
  peer.box = Region();
  peer.say({.kind = EntryKind::let_go, .region = kBox});
  EXPECT_TRUE(peer.is_reachable(memory));
  peer.reach.finish_all();
  peer.fabric->poll();
  EXPECT_FALSE(peer.is_reachable(memory));
}

TEST(ByDevice, AReleasedRegionIsFreedWhenThePeerHasFailed) {
  PeerWithDevices peer;
  const std::byte* const memory = peer.box.memory().data();
  ASSERT_TRUE(peer.fabric->post(put(1, peer.box.id(), 0, memory, 100)).all());
  peer.box = Region();
  EXPECT_TRUE(peer.is_reachable(memory));
  peer.transport->end = "its connection closed";
  peer.fabric->poll();
  EXPECT_FALSE(peer.is_reachable(memory));
}

TEST(ByDevice, WhatIsWithdrawnIsLetGoWhenAllThatWasAskedOfItHasCome) {
  PeerWithDevices peer;
  std::uint64_t word = 0;
  ASSERT_TRUE(peer.fabric->post(read(1, peer.box.id(), 0, &word, 8)).all());
  ASSERT_TRUE(peer.fabric->post(peer.word()).all());
  peer.say({.kind = EntryKind::withdraw, .region = test::kTheirNumber});
  EXPECT_TRUE(peer.heard(EntryKind::let_go).empty());
  peer.reach.done[1] = 1;  // the read, and not yet the write
  peer.fabric->poll();
  ASSERT_EQ(peer.heard(EntryKind::let_go).size(), 1U);
  EXPECT_EQ(peer.heard(EntryKind::let_go)[0].region, test::kTheirNumber);
}

/// A peer that beats, but does not answer, is not silent: so there is a limit.
/// STR-R3 promises the limit and the error.
TEST(ByDevice, RegionsThatAreNotLetGoAreLimitedAndTheErrorNamesWhoHoldsThem) {
  PeerWithDevices peer;
  std::vector<std::uint32_t> numbers;
  const auto come_and_go = [&] {
    const Region next = peer.fabric->allocate({.name = "next", .bytes = 64});
    peer.fabric->announce(next);
    peer.fabric->poll();
    numbers.push_back(peer.heard(EntryKind::announce).back().region);
    peer.transport->outgoing.clear();
  };
  for (std::uint32_t i = 0; i < kMaxRetiredRegions; ++i) come_and_go();
  EXPECT_EQ(peer.reach.reachable.size(), kMaxRetiredRegions + 1);
  for (const char* const named : {"kMaxRetiredRegions", "'next'", "'them'"})
    conformance::expect_error(come_and_go, named);
  EXPECT_EQ(peer.reach.reachable.size(), kMaxRetiredRegions + 1);
  peer.say({.kind = EntryKind::let_go, .region = numbers[9]});
  come_and_go();
  conformance::expect_error(come_and_go, "kMaxRetiredRegions");
  peer.transport->end = "its connection closed";
  peer.fabric->poll();
  EXPECT_EQ(peer.reach.reachable.size(), 1U);
}

TEST(ByDevice, APeerThatWithdrawsFasterThanIsLetGoHasALimit) {
  PeerWithDevices peer;
  std::uint64_t word = 0;
  ASSERT_TRUE(peer.fabric->post(read(1, peer.box.id(), 0, &word, 8)).all());
  const Announcement words{.generation = 1, .layout_hash = 0, .name = "more"};
  Bytes said(words.bytes());
  words.encode(said.data());
  std::uint32_t rounds = 0;
  for (; rounds < 10'000 && !peer.fabric->failed(1); ++rounds)
    peer.say(
        FrameBuilder()
            .add({.kind = EntryKind::announce, .region = 4 * kMaxRegions + rounds, .value = 64},
                 said)
            .add({.kind = EntryKind::withdraw, .region = 4 * kMaxRegions + rounds})
            .frame());
  peer.expect_failed("withdraws more");
  EXPECT_EQ(rounds, kMaxRegions + kMaxRetiredRegions + 1);
}

// --- sleeping ------------------------------------------------------------------------------------

/// STR-B4: a frame wakes.
TEST(ByDevice, ASignalIsFollowedByAFrameForWhoDozesOnly) {
  PeerWithDevices peer;
  ASSERT_TRUE(peer.fabric->post(peer.word()).all());
  EXPECT_TRUE(peer.transport->outgoing.empty());
  peer.say({.kind = EntryKind::dozing, .value = 1});
  ASSERT_EQ(peer.heard(EntryKind::noted).size(), 1U);
  std::size_t operations_before = 0;
  const std::array<Operation, 2> batch{peer.word(0), peer.word(8)};
  peer.reach.on_start = [&](const Operation&) {
    if (peer.heard(EntryKind::beat).empty()) ++operations_before;
  };
  ASSERT_TRUE(peer.fabric->post(batch).all());
  EXPECT_EQ(peer.heard(EntryKind::beat).size(), 1U) << "one for the batch";
  EXPECT_EQ(operations_before, 2U) << "behind it";
  const std::uint64_t word = 1;
  ASSERT_TRUE(peer.fabric->post(put(1, peer.box.id(), 0, &word, 8)).all());
  EXPECT_EQ(peer.heard(EntryKind::beat).size(), 1U) << "nobody looks at a put";
  peer.say({.kind = EntryKind::dozing, .value = 0});
  ASSERT_TRUE(peer.fabric->post(peer.word()).all());
  EXPECT_EQ(peer.heard(EntryKind::beat).size(), 1U);
}

TEST(ByDevice, WhoMaySleepSaysSoOnce) {
  PeerWithDevices peer;
  for (int i = 0; i < 3; ++i) {
    peer.fabric->prepare_sleep();
    peer.fabric->poll();
    peer.fabric->cancel_sleep();
  }
  ASSERT_EQ(peer.heard(EntryKind::dozing).size(), 1U);
  EXPECT_EQ(peer.heard(EntryKind::dozing)[0].value, 1U);
  peer.say({.kind = EntryKind::noted});
  EXPECT_FALSE(peer.fabric->failed(1));
  peer.say({.kind = EntryKind::noted});
  peer.expect_failed("noted what was not said");
}

TEST(ByDevice, APeerDozesOrDoesNotAndSaysItOnce) {
  for (const std::uint64_t value : {0U, 1U}) {
    PeerWithDevices peer;
    if (value == 1) peer.say({.kind = EntryKind::dozing, .value = 1});
    EXPECT_FALSE(peer.fabric->failed(1));
    peer.say({.kind = EntryKind::dozing, .value = value});
    peer.expect_failed("says again");
  }
  PeerWithDevices peer;
  peer.say({.kind = EntryKind::dozing, .value = 2});
  peer.expect_failed("dozes more");
}

/// It takes no answers, so these wait; as many as it may ask for, and no more.
TEST(ByDevice, APeerThatFloodsWithDozingHasALimit) {
  PeerWithDevices peer;
  FrameBuilder flood;
  constexpr std::uint64_t kPairs = 500;
  for (std::uint64_t i = 0; i < kPairs; ++i)
    flood.add({.kind = EntryKind::dozing, .value = 1}).add({.kind = EntryKind::dozing});
  for (int i = 0; i < 1'000; ++i) peer.say(flood.frame());
  EXPECT_FALSE(peer.fabric->failed(1)) << "what is answered at once is not kept";
  peer.transport->outgoing.clear();
  peer.transport->free_buffers = 0;
  std::uint64_t floods = 0;
  for (; floods < 1'000 && !peer.fabric->failed(1); ++floods) peer.say(flood.frame());
  peer.expect_failed("more than it may");
  EXPECT_LE(floods * kPairs * sizeof(EntryHead), 3 * kReadWindowBytes);
  EXPECT_TRUE(peer.transport->outgoing.empty());
}

}  // namespace
}  // namespace dunlin::stream

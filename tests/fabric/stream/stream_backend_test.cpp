#include <chrono>

#include <gtest/gtest.h>

#include "fabric/stream/scripted_peer.hpp"

/// What the conformance suite cannot see: how often a stream speaks, and what it keeps.
namespace dunlin::stream {
namespace {

using test::Bytes;
using test::ScriptedPeer;

constexpr std::uint32_t kTheirs = test::kTheirNumber;

std::vector<EntryHead> in_frame(const Bytes& frame) {
  std::vector<EntryHead> all;
  FrameReader reader(frame);
  Entry entry;
  while (reader.next(entry)) all.push_back(entry.head);
  return all;
}

/// A peer with a box on both sides, and nothing that is not sent.
struct Pair : ScriptedPeer {
  Region box = announce_box();
  Pair() {
    announce_theirs();
    transport->outgoing.clear();
  }
  [[nodiscard]] Operation word(std::uint64_t offset, const std::uint64_t& value) const {
    return write(1, box.id(), offset, &value, 8);
  }
};

TEST(StreamBackend, SendsABatchAtOnceAsOneFrame) {
  Pair pair;
  const std::uint64_t value = 7;
  const std::array<Operation, 3> batch{pair.word(0, value), pair.word(8, value),
                                       put(1, pair.box.id(), 16, &value, 8)};
  ASSERT_TRUE(pair.fabric->post(batch).all());
  ASSERT_EQ(pair.transport->outgoing.size(), 1U);
  const auto entries = in_frame(pair.transport->outgoing[0]);
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].region, kTheirs);
  EXPECT_EQ(entries[1].value, 8U);
  EXPECT_EQ(entries[2].kind, EntryKind::put);
}

/// By TCP-T1 operations that are posted one by one leave in one frame.
TEST(StreamBackend, GathersWhatIsPostedWhileAFrameIsUnderWay) {
  Pair pair;
  const std::uint64_t value = 7;
  pair.transport->busy = true;
  for (std::uint64_t i = 0; i < 10; ++i)
    ASSERT_TRUE(pair.fabric->post(pair.word(8 * i, value)).all());
  EXPECT_TRUE(pair.transport->outgoing.empty());
  pair.fabric->poll();
  ASSERT_EQ(pair.transport->outgoing.size(), 1U);
  EXPECT_EQ(in_frame(pair.transport->outgoing[0]).size(), 10U);
}

TEST(StreamBackend, SendsWhatIsFollowedByMoreInOneFrameWithThat) {
  Pair pair;
  const std::uint64_t value = 7;
  ASSERT_TRUE(pair.fabric->post(put(1, pair.box.id(), 8, &value, 8).more_follows()).all());
  EXPECT_TRUE(pair.transport->outgoing.empty());
  ASSERT_TRUE(pair.fabric->post(pair.word(0, value)).all());
  ASSERT_EQ(pair.transport->outgoing.size(), 1U);
  EXPECT_EQ(in_frame(pair.transport->outgoing[0]).size(), 2U);
}

TEST(StreamBackend, SendsWhatMoreShouldFollowAtTheNextPoll) {
  Pair pair;
  const std::uint64_t value = 7;
  ASSERT_TRUE(pair.fabric->post(put(1, pair.box.id(), 8, &value, 8).more_follows()).all());
  pair.fabric->poll();
  ASSERT_EQ(pair.transport->outgoing.size(), 1U);
  EXPECT_EQ(in_frame(pair.transport->outgoing[0]).size(), 1U);
}

/// STR-S4 promises what this test checks.
TEST(StreamBackend, PushesBackWhenThereIsNoBufferAndLosesNothing) {
  Pair pair;
  pair.transport->free_buffers = 0;
  const std::uint64_t value = 7;
  Completion done;
  const Operation asks = pair.word(0, value).notify(done, Notify::remotely);
  EXPECT_EQ(pair.fabric->post(asks).refusal, Refusal::queue_full);
  EXPECT_EQ(pair.fabric->send(1, 0, {}), Refusal::queue_full);
  std::uint64_t fetched = 0;
  EXPECT_EQ(pair.fabric->post(read(1, pair.box.id(), 0, &fetched, 8)).refusal, Refusal::queue_full);
  EXPECT_EQ(pair.fabric->post(fetch_add(1, pair.box.id(), 0, 1, nullptr)).refusal,
            Refusal::queue_full);
  EXPECT_TRUE(done.finished());
  pair.transport->free_buffers = 1;
  ASSERT_TRUE(pair.fabric->post(asks).all());
  pair.fabric->poll();
  EXPECT_EQ(pair.heard(EntryKind::write).size(), 1U);
  EXPECT_FALSE(done.finished());
  pair.say({.kind = EntryKind::placed, .value = 1});
  EXPECT_TRUE(done.finished());
}

TEST(StreamBackend, AnswersEvenWithoutABufferAndInOrder) {
  Pair pair;
  pair.transport->free_buffers = 0;
  for (std::uint32_t ticket = 0; ticket < 3; ++ticket)
    pair.say(
        {.kind = EntryKind::fetch_add, .flags = kAsks, .region = kMaxRegions, .ticket = ticket},
        Bytes(8, std::byte{1}));
  const Region more = pair.fabric->allocate({.name = "more", .bytes = 64});
  pair.fabric->announce(more);
  pair.fabric->poll();
  EXPECT_TRUE(pair.transport->outgoing.empty());
  pair.transport->free_buffers = UINT32_MAX;
  pair.fabric->poll();
  std::vector<EntryHead> entries;
  for (const Bytes& frame : pair.transport->outgoing)
    for (const EntryHead& head : in_frame(frame)) entries.push_back(head);
  ASSERT_EQ(entries.size(), 4U);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(entries[i].ticket, i);
  EXPECT_EQ(entries[3].kind, EntryKind::announce);
}

TEST(StreamBackend, AsksForNoMoreOfALongReadThanItsWindow) {
  constexpr std::uint64_t kLong = 10 * kReadWindowBytes;
  Pair pair;
  const Region wide = pair.fabric->allocate({.name = "wide", .bytes = 64});
  const Announcement words{.generation = 1, .layout_hash = 0, .name = "wide"};
  Bytes said(words.bytes());
  words.encode(said.data());
  pair.say({.kind = EntryKind::announce, .region = test::kTheirNumber + 1, .value = kLong}, said);
  Bytes target(kLong + 8, std::byte{9});
  Completion done;
  ASSERT_TRUE(pair.fabric->post(read(1, wide.id(), 0, target.data(), kLong).notify(done)).all());
  std::uint64_t answered = 0;
  std::size_t most = 0;
  while (!done.finished()) {
    const auto asked = pair.heard(EntryKind::read);
    std::uint64_t bytes = 0;
    for (const EntryHead& head : asked) bytes += head.bytes;
    ASSERT_LE(bytes - answered, kReadWindowBytes);
    ASSERT_GT(bytes, answered) << "it waits for nothing";
    most = std::max<std::size_t>(most, bytes - answered);
    pair.say({.kind = EntryKind::bytes, .value = answered}, Bytes(16'384, std::byte{5}));
    ASSERT_FALSE(pair.fabric->failed(1)) << pair.fabric->failure_text(1);
    answered += 16'384;
  }
  EXPECT_EQ(most, kReadWindowBytes);
  EXPECT_EQ(answered, kLong);
  EXPECT_EQ(std::count(target.begin(), target.end(), std::byte{5}), static_cast<long>(kLong));
  EXPECT_EQ(target[kLong], std::byte{9});
}

/// What is too long to be copied at once (STR-S3), to a region of the peer that is long enough.
struct LongPair : Pair {
  static constexpr std::size_t kLong = kMaxCopiedBytes + 3 * kMinFrameBytes;
  Region wide = fabric->allocate({.name = "wide", .bytes = kLong});
  Bytes source = Bytes(kLong, std::byte{3});
  LongPair() {
    const Announcement words{.generation = 1, .layout_hash = 0, .name = "wide"};
    Bytes said(words.bytes());
    words.encode(said.data());
    say({.kind = EntryKind::announce, .region = test::kTheirNumber + 1, .value = kLong}, said);
    transport->outgoing.clear();
    transport->free_buffers = 2;
  }
  [[nodiscard]] Operation whole() const { return put(1, wide.id(), 0, source.data(), kLong); }
  /// All that has arrived, and nothing twice.
  [[nodiscard]] Bytes arrived() const {
    Bytes all;
    for (const Bytes& frame : transport->outgoing) {
      FrameReader reader(frame);
      Entry entry;
      while (reader.next(entry)) {
        if (entry.head.kind != EntryKind::put) continue;
        EXPECT_EQ(entry.head.value, all.size());
        all.insert(all.end(), entry.content().begin(), entry.content().end());
      }
    }
    return all;
  }
  void let_all_go() {
    transport->free_buffers = UINT32_MAX;
    fabric->poll();
  }
};

TEST(StreamBackend, CopiesALongSourceAsThereAreBuffersForIt) {
  LongPair pair;
  Completion done;
  ASSERT_TRUE(pair.fabric->post(pair.whole().notify(done)).all());
  EXPECT_EQ(pair.transport->outgoing.size(), 2U);
  EXPECT_FALSE(done.finished());
  std::fill(pair.source.begin() + 3 * kMinFrameBytes, pair.source.end(), std::byte{4});
  pair.transport->free_buffers = 1;
  pair.fabric->poll();
  EXPECT_EQ(pair.transport->outgoing.size(), 3U);
  EXPECT_FALSE(done.finished());
  pair.let_all_go();
  EXPECT_TRUE(done.finished());
  EXPECT_FALSE(done.failed());
  const Bytes arrived = pair.arrived();
  ASSERT_EQ(arrived.size(), LongPair::kLong);
  EXPECT_EQ(arrived.front(), std::byte{3});
  EXPECT_EQ(arrived.back(), std::byte{4}) << "it was copied before there was a buffer";
}

TEST(StreamBackend, LetsNothingOvertakeALongSource) {
  LongPair pair;
  Completion done;
  ASSERT_TRUE(pair.fabric->post(pair.whole().notify(done, Notify::remotely)).all());
  const std::uint64_t value = 7;
  EXPECT_EQ(pair.fabric->post(pair.word(0, value)).refusal, Refusal::queue_full);
  EXPECT_EQ(pair.fabric->post(fetch_add(1, pair.box.id(), 0, 1, nullptr)).refusal,
            Refusal::queue_full);
  EXPECT_EQ(pair.fabric->send(1, 0, {}), Refusal::queue_full);
  pair.let_all_go();
  EXPECT_FALSE(done.finished());
  ASSERT_TRUE(pair.fabric->post(pair.word(0, value)).all());
  EXPECT_EQ(in_frame(pair.transport->outgoing.back()).back().kind, EntryKind::write);
  pair.say({.kind = EntryKind::placed, .value = 1});
  EXPECT_TRUE(done.finished());
  EXPECT_FALSE(done.failed());
}

TEST(StreamBackend, GivesALongSourceUpWithItsPeer) {
  LongPair pair;
  Completion done;
  ASSERT_TRUE(pair.fabric->post(pair.whole().notify(done)).all());
  pair.transport->end = "its connection closed";
  pair.fabric->poll();
  EXPECT_EQ(done.failures(), 1U);
}

TEST(StreamBackend, ReadsNoMoreOfALongSourceThatIsAbandoned) {
  LongPair pair;
  Completion done;
  ASSERT_TRUE(pair.fabric->post(pair.whole().notify(done)).all());
  pair.fabric->abandon(done);
  pair.source = Bytes();
  EXPECT_TRUE(done.finished());
  pair.let_all_go();
  EXPECT_LT(pair.arrived().size(), LongPair::kLong);
  const std::uint64_t value = 7;
  EXPECT_TRUE(pair.fabric->post(pair.word(0, value)).all());
}

TEST(StreamBackend, KeepsAReleasedRegionUntilTheLongSourceInItIsCopied) {
  LongPair pair;
  Region from = pair.fabric->allocate({.name = "from", .bytes = LongPair::kLong});
  std::fill(from.memory().begin(), from.memory().end(), std::byte{6});
  Completion done;
  const Operation whole = put(1, pair.wide.id(), 0, from.memory().data(), LongPair::kLong);
  ASSERT_TRUE(pair.fabric->post(whole.notify(done)).all());
  from = Region();
  pair.fabric->poll();
  pair.let_all_go();
  EXPECT_TRUE(done.finished());
  const Bytes arrived = pair.arrived();
  EXPECT_EQ(std::count(arrived.begin(), arrived.end(), std::byte{6}),
            static_cast<long>(LongPair::kLong));
}

TEST(StreamBackend, SaysOfAReadOfAReleasedRegionThatItFailed) {
  Pair pair;
  std::uint64_t fetched = 3;
  std::uint64_t before = 4;
  Completion done;
  ASSERT_TRUE(pair.fabric->post(read(1, pair.box.id(), 0, &fetched, 8).notify(done)).all());
  ASSERT_TRUE(pair.fabric->post(fetch_add(1, pair.box.id(), 0, 1, &before).notify(done)).all());
  pair.say({.kind = EntryKind::bytes, .flags = kGone, .value = 8});
  pair.say({.kind = EntryKind::former, .flags = kGone});
  EXPECT_TRUE(done.finished());
  EXPECT_EQ(done.failures(), 2U);
  EXPECT_EQ(fetched, 3U);
  EXPECT_EQ(before, 4U);
  EXPECT_FALSE(pair.fabric->failed(1));
}

TEST(StreamBackend, TakesSilenceForFailure) {
  ScriptedPeer peer(true, 20);
  while (!peer.fabric->failed(1)) peer.fabric->poll();
  peer.expect_failed("no sign of life for 20 ms");
}

/// Whoever has not spoken yet may still be connecting to the others.
TEST(StreamBackend, TakesNoSilenceForFailureBeforeTheGroupMustHaveFormed) {
  constexpr std::uint64_t kLongSilenceNs = 200'000'000;  // ten times too long
  const std::uint64_t formed_by_ns = read_clock_ns(CLOCK_MONOTONIC) + kLongSilenceNs;
  ScriptedPeer peer(false, 20, formed_by_ns);
  while (!peer.fabric->failed(1)) peer.fabric->poll();
  EXPECT_GE(peer.fabric->recent_ns(), formed_by_ns);
  peer.expect_failed("no sign of life for 20 ms");
  ScriptedPeer greeted(true, 20, UINT64_MAX);
  while (!greeted.fabric->failed(1)) greeted.fabric->poll();
}

TEST(StreamBackend, BeatsAtMostOnceAMillisecondHoweverImpatientThePeerIs) {
  ScriptedPeer peer(false);
  const std::uint64_t begun_ns = read_clock_ns(CLOCK_MONOTONIC);
  Hello words = ScriptedPeer::right_hello();
  words.silence_timeout_ms = 1;
  peer.say(ScriptedPeer::hello(words));
  while (peer.heard(EntryKind::beat).size() < 6) peer.fabric->poll();
  EXPECT_GE(peer.fabric->recent_ns() - begun_ns, 5'000'000U);
}

TEST(StreamBackend, BeatsForAPeerThatCountsSilenceAndForNoOther) {
  ScriptedPeer patient;
  for (int i = 0; i < 10'000; ++i) patient.fabric->poll();
  EXPECT_TRUE(patient.heard(EntryKind::beat).empty());
  ScriptedPeer peer(false);
  Hello words = ScriptedPeer::right_hello();
  words.silence_timeout_ms = 4;
  peer.say(ScriptedPeer::hello(words));
  while (peer.heard(EntryKind::beat).size() < 3) peer.fabric->poll();
  EXPECT_FALSE(peer.fabric->failed(1));
}

/// What it said first may have been overlooked.
TEST(StreamBackend, BeatsUntilThePeerHasSaidWhoItIsThoughNobodyCountsSilence) {
  ScriptedPeer peer(false);
  while (peer.heard(EntryKind::beat).size() < 2) peer.fabric->poll();
  peer.say(ScriptedPeer::hello());
  const std::size_t beats = peer.heard(EntryKind::beat).size();
  const std::uint64_t begun_ns = peer.fabric->recent_ns();
  while (peer.fabric->recent_ns() - begun_ns < 120'000'000) peer.fabric->poll();
  EXPECT_EQ(peer.heard(EntryKind::beat).size(), beats);
}

TEST(StreamBackend, TellsALeaveFromADeath) {
  ScriptedPeer leaves;
  leaves.say({.kind = EntryKind::leave});
  EXPECT_FALSE(leaves.fabric->failed(1));
  leaves.transport->end = "its connection closed";
  leaves.fabric->poll();
  leaves.expect_failed("left the group");
  ScriptedPeer dies;
  dies.transport->end = "its connection closed";
  dies.fabric->poll();
  dies.expect_failed("connection closed");
}

/// What a message without a handler holds back, it does not hold back from the sender's account.
TEST(StreamBackend, TellsWhatItHasHeardThoughAMessageThatWaitsComesNext) {
  ScriptedPeer peer;
  constexpr std::size_t kEnough = Inbox::kWindowBytes / 4 / kMaxMessageBytes + 1;
  for (std::size_t i = 0; i < kEnough; ++i)
    peer.say({.kind = EntryKind::message, .channel = 1}, Bytes(kMaxMessageBytes));
  peer.say({.kind = EntryKind::message, .channel = 2}, Bytes(8));
  EXPECT_TRUE(peer.heard(EntryKind::heard).empty());
  std::size_t handled = 0;
  peer.fabric->receive(1, [&](Rank, std::span<const std::byte>) { ++handled; });
  peer.fabric->poll();
  EXPECT_EQ(handled, kEnough);
  EXPECT_EQ(peer.heard(EntryKind::heard).size(), 1U);
}

/// Whoever says nothing else beats, also if messages come all the time. They come 8 us apart:
/// so what was handled of them is told less often than there has to be a beat. If it were told more
/// often, that would be the sign of life.
TEST(StreamBackend, BeatsThoughItHearsMessages) {
  constexpr auto kApart = std::chrono::microseconds(8);
  ScriptedPeer peer(false);
  Hello words = ScriptedPeer::right_hello();
  words.silence_timeout_ms = 4;
  peer.say(ScriptedPeer::hello(words));
  peer.fabric->receive(1, [](Rank, std::span<const std::byte>) {});
  const auto begun = std::chrono::steady_clock::now();
  auto due = begun;
  while (peer.heard(EntryKind::beat).size() < 3) {
    const auto now = std::chrono::steady_clock::now();
    ASSERT_LT(now - begun, std::chrono::minutes(1)) << "no beat";
    if (now < due) {
      peer.fabric->poll();
      continue;
    }
    peer.say({.kind = EntryKind::message, .channel = 1}, Bytes(8));
    due = now + kApart;
  }
}

}  // namespace
}  // namespace dunlin::stream

#include <gtest/gtest.h>

#include "fabric/stream/scripted_peer.hpp"

/// STR-S5 to STR-S7: a member is trusted with its own row, not with our process.
namespace dunlin::stream {
namespace {

using test::Bytes;
using test::FrameBuilder;
using test::ScriptedPeer;

constexpr std::uint32_t kBox = kMaxRegions;

TEST(HostilePeer, IsHeardOnlyAfterItHasProvedWhoItIs) {
  const Hello right = ScriptedPeer::right_hello();
  const auto refused = [&](auto change, const std::string& because) {
    Hello words = right;
    change(words);
    ScriptedPeer peer(false);
    peer.say(ScriptedPeer::hello(words));
    peer.expect_failed(because);
  };
  refused([](Hello& h) { h.proof[31] = std::byte{9}; }, "key");
  refused([](Hello& h) { h.from = 0; }, "somebody else");
  refused([](Hello& h) { h.to = 1; }, "somebody else");
  refused([](Hello& h) { h.version = 2; }, "version");
  refused([](Hello& h) { h.magic[0] = 'X'; }, "protocol");
  ScriptedPeer silent(false);
  const Region box = silent.announce_box();
  silent.say({.kind = EntryKind::write, .region = kBox}, Bytes(8, std::byte{1}));
  silent.expect_failed("who it is");
  EXPECT_EQ(box.memory()[0], std::byte{0});
}

TEST(HostilePeer, MeansNoDeviceWhereThereIsNone) {
  const EntryHead heads[] = {{.kind = EntryKind::let_go, .region = kBox},
                             {.kind = EntryKind::dozing, .value = 1},
                             {.kind = EntryKind::noted}};
  for (const EntryHead& head : heads) {
    ScriptedPeer peer;
    const Region box = peer.announce_box();
    peer.say(head);
    peer.expect_failed("device");
  }
}

TEST(HostilePeer, SaysWhoItIsOnce) {
  ScriptedPeer peer;
  peer.say(ScriptedPeer::hello());
  peer.expect_failed("twice");
}

/// STR-S6 has everything checked before memory is touched.
TEST(HostilePeer, ReachesNothingButAnnouncedRegionsInsideTheirBounds) {
  const auto refused = [](const EntryHead& head, std::size_t bytes, const std::string& because) {
    ScriptedPeer peer;
    const Region box = peer.announce_box();
    peer.say(head, Bytes(bytes, std::byte{0xff}));
    peer.expect_failed(because);
    for (const std::byte byte : box.memory()) ASSERT_EQ(byte, std::byte{0});
  };
  for (const EntryKind kind : {EntryKind::put, EntryKind::write}) {
    refused({.kind = kind, .region = kBox, .value = 250}, 7, "end");
    refused({.kind = kind, .region = kBox, .value = 257}, 0, "end");
    refused({.kind = kind, .region = kBox, .value = UINT64_MAX - 7}, 16, "end");
    refused({.kind = kind, .region = kBox + 1}, 8, "region");
    refused({.kind = kind, .region = 2 * kBox}, 8, "region");
    refused({.kind = kind, .region = 0}, 8, "region");
  }
  refused({.kind = EntryKind::fetch_add, .region = kBox, .value = 256}, 8, "end");
  refused({.kind = EntryKind::fetch_add, .region = kBox, .value = 4}, 8, "word");
  refused({.kind = EntryKind::compare_swap, .region = kBox, .value = 252}, 16, "word");
  refused({.kind = EntryKind::read, .bytes = 257, .region = kBox}, 0, "end");
  refused({.kind = EntryKind::read, .bytes = UINT32_MAX, .region = kBox}, 0, "more");
}

TEST(HostilePeer, MayHaveBeenOvertakenByARelease) {
  ScriptedPeer peer;
  Region box = peer.announce_box();
  box = Region();
  const Region next = peer.announce_box();
  peer.say(
      FrameBuilder()
          .add({.kind = EntryKind::write, .flags = kAsks, .region = kBox}, Bytes(8, std::byte{1}))
          .add({.kind = EntryKind::read, .bytes = 40, .region = kBox, .ticket = 3})
          .add({.kind = EntryKind::fetch_add, .flags = kAsks, .region = kBox, .ticket = 5},
               Bytes(8))
          .frame());
  EXPECT_FALSE(peer.fabric->failed(1));
  for (const std::byte byte : next.memory()) ASSERT_EQ(byte, std::byte{0});
  ASSERT_EQ(peer.heard(EntryKind::placed).size(), 1U);
  EXPECT_EQ(peer.heard(EntryKind::placed)[0].flags, kGone);
  ASSERT_EQ(peer.heard(EntryKind::bytes).size(), 1U);
  EXPECT_EQ(peer.heard(EntryKind::bytes)[0].flags, kGone);
  EXPECT_EQ(peer.heard(EntryKind::bytes)[0].value, 40U);
  ASSERT_EQ(peer.heard(EntryKind::former).size(), 1U);
  EXPECT_EQ(peer.heard(EntryKind::former)[0].ticket, 5U);
}

TEST(HostilePeer, AnswersOnlyWhatWasAsked) {
  const auto refused = [](const EntryHead& head, const Bytes& payload) {
    ScriptedPeer peer;
    const Region box = peer.announce_box();
    peer.announce_theirs();
    alignas(8) std::array<std::byte, 64> target{};
    Completion read_done;
    Completion added;
    Completion written;
    ASSERT_TRUE(peer.fabric->post(read(1, box.id(), 0, target.data(), 32).notify(read_done)).all());
    ASSERT_TRUE(peer.fabric->post(fetch_add(1, box.id(), 0, 1, nullptr).notify(added)).all());
    ASSERT_TRUE(
        peer.fabric->post(write(1, box.id(), 0, target.data(), 8).notify(written, Notify::remotely))
            .all());
    peer.fabric->poll();
    ASSERT_FALSE(peer.fabric->failed(1));
    peer.say(head, payload);
    peer.expect_failed("not asked");
    EXPECT_TRUE(read_done.failed());
    EXPECT_TRUE(added.failed());
    EXPECT_TRUE(written.failed());
    EXPECT_EQ(target[32], std::byte{0});
  };
  refused({.kind = EntryKind::bytes, .ticket = 1}, Bytes(32));
  refused({.kind = EntryKind::bytes}, Bytes(33, std::byte{1}));
  refused({.kind = EntryKind::bytes, .value = 8}, Bytes(24));
  refused({.kind = EntryKind::bytes}, {});
  refused({.kind = EntryKind::bytes, .flags = kGone, .value = 33}, {});
  refused({.kind = EntryKind::former, .ticket = 1}, {});
  refused({.kind = EntryKind::placed, .value = 2}, {});
  refused({.kind = EntryKind::placed, .value = 0}, {});
}

TEST(HostilePeer, HearsOnlyMessagesThatWereSent) {
  ScriptedPeer peer;
  peer.say({.kind = EntryKind::heard, .value = 1});
  peer.expect_failed("not sent");
}

TEST(HostilePeer, CannotFillOurMemoryWithMessages) {
  ScriptedPeer peer;
  for (int i = 0; i < 1'000 && !peer.fabric->failed(1); ++i)
    peer.say({.kind = EntryKind::message, .channel = 1}, Bytes(kMaxMessageBytes));
  peer.expect_failed("more messages");
}

TEST(HostilePeer, CannotFillOurMemoryWithAnswers) {
  ScriptedPeer peer;
  const Region box = peer.announce_box();
  peer.transport->free_buffers = 1;
  std::uint32_t ticket = 0;
  while (ticket < 100'000 && !peer.fabric->failed(1)) {
    FrameBuilder builder;
    for (int i = 0; i < 100; ++i)
      builder.add({.kind = EntryKind::read, .bytes = 256, .region = kBox, .ticket = ticket++});
    peer.say(builder.frame());
  }
  peer.expect_failed("more than it may");
}

TEST(HostilePeer, CannotAnnounceWhatIsNoRegion) {
  const auto refused = [](std::uint32_t number, std::uint64_t bytes, const Announcement& words) {
    Bytes payload(words.bytes());
    words.encode(payload.data());
    ScriptedPeer peer;
    peer.say({.kind = EntryKind::announce, .region = number, .value = bytes}, payload);
    peer.expect_failed("announced");
  };
  refused(test::kTheirNumber, 0, {.generation = 1, .name = "box"});
  refused(test::kTheirNumber, kMaxRegionBytes + 1, {.generation = 1, .name = "box"});
  refused(kMaxRegions - 1, 64, {.generation = 1, .name = "box"});
  refused(test::kTheirNumber, 64, {.generation = 1, .name = "b\x01x"});
  ScriptedPeer twice;
  twice.announce_theirs();
  twice.announce_theirs();
  twice.expect_failed("twice");
  ScriptedPeer never;
  never.say({.kind = EntryKind::withdraw, .region = test::kTheirNumber});
  never.expect_failed("not announced");
}

/// Thousands of frames, each sound in its form or nearly so: the fabric applies them or gives the
/// peer up, once; nothing but the announced region changes, and everything comes to an end.
TEST(HostilePeer, SayingAnythingHarmsNothingElse) {
  std::minstd_rand random(7);
  std::uint64_t survived = 0;
  for (int round = 0; round < 1'500; ++round) {
    ScriptedPeer peer;
    const Region box = peer.announce_box();
    const Region guard = peer.fabric->allocate({.name = "guard", .bytes = 4096});
    peer.announce_theirs();
    peer.fabric->receive(1, [](Rank, std::span<const std::byte>) {});
    struct {
      std::uint64_t before = UINT64_MAX;
      alignas(8) std::array<std::byte, 64> target{};
      std::uint64_t after = UINT64_MAX;
    } local;
    Completion done;
    for (int i = 0; i < 2; ++i) {
      static_cast<void>(
          peer.fabric->post(read(1, box.id(), 8, local.target.data(), 64).notify(done)));
      static_cast<void>(peer.fabric->post(fetch_add(1, box.id(), 0, 1, nullptr).notify(done)));
      static_cast<void>(peer.fabric->post(
          put(1, box.id(), 0, local.target.data(), 9).notify(done, Notify::remotely)));
    }
    for (int frames = 0; frames < 3 && !peer.fabric->failed(1); ++frames) {
      FrameBuilder builder;
      for (std::size_t i = random() % 2; i < 2; ++i) test::add_any(builder, random);
      Bytes frame = builder.frame();
      if (random() % 4 == 0) test::spoil(frame, random);
      peer.say(frame);
    }
    for (const std::byte byte : guard.memory()) ASSERT_EQ(byte, std::byte{0});
    ASSERT_EQ(local.before, UINT64_MAX);
    ASSERT_EQ(local.after, UINT64_MAX);
    if (!peer.fabric->failed(1)) ++survived;
    peer.transport->end = "enough";
    peer.fabric->poll();
    ASSERT_EQ(peer.failures, 1);
    ASSERT_TRUE(done.finished());
  }
  EXPECT_GT(survived, 20U);
}

}  // namespace
}  // namespace dunlin::stream

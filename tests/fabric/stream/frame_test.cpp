#include "fabric/stream/frame.hpp"

#include <gtest/gtest.h>

#include "fabric/stream/frames.hpp"

namespace dunlin::stream {
namespace {

using test::Bytes;
using test::bytes_of;
using test::Exact;
using test::FrameBuilder;

/// All entries of a frame, as they were added; nothing if the frame is garbage anywhere.
std::vector<std::pair<EntryHead, Bytes>> read_all(const Bytes& frame) {
  const Exact exact(frame);
  std::vector<std::pair<EntryHead, Bytes>> all;
  FrameReader reader(exact.view());
  Entry entry;
  while (reader.next(entry)) {
    const auto content = entry.content();
    all.emplace_back(entry.head, Bytes(content.begin(), content.end()));
  }
  if (reader.garbage()) all.clear();
  return all;
}

bool is_garbage(const Bytes& frame) { return read_all(frame).empty(); }

Bytes one(const EntryHead& head, const Bytes& payload = {}) {
  return FrameBuilder().add(head, payload).frame();
}

TEST(Frame, IsReadAsItWasWritten) {
  const Bytes text = bytes_of("some text");
  FrameBuilder builder;
  builder.add({.kind = EntryKind::put, .region = kMaxRegions, .value = 3}, text)
      .add({.kind = EntryKind::write, .flags = kAsks, .region = kMaxRegions + 1, .value = 13}, text)
      .add({.kind = EntryKind::read, .bytes = 99, .region = kMaxRegions, .ticket = 7, .value = 5})
      .add({.kind = EntryKind::message, .channel = 9}, {})
      .add({.kind = EntryKind::former, .flags = kGone, .ticket = 4})
      .add({.kind = EntryKind::beat});
  const auto all = read_all(builder.frame());
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all[0].first.value, 3U);
  EXPECT_EQ(all[0].second, text);
  EXPECT_EQ(all[1].first.flags, kAsks);
  EXPECT_EQ(all[1].second, text);
  EXPECT_EQ(all[2].first.bytes, 99U);
  EXPECT_TRUE(all[2].second.empty());
  EXPECT_EQ(all[3].first.channel, 9U);
  EXPECT_EQ(all[4].first.ticket, 4U);
  EXPECT_EQ(all[5].first.kind, EntryKind::beat);
}

/// The worked example of docs/formats/stream.md.
TEST(Frame, HasTheBytesThatItsPageShows) {
  const std::uint32_t value = 42;
  Bytes word(4);
  std::memcpy(word.data(), &value, 4);
  const Bytes frame =
      FrameBuilder()
          .add({.kind = EntryKind::write, .flags = kAsks, .region = 0x0105, .value = 12}, word)
          .add({.kind = EntryKind::beat})
          .frame();
  const std::array<unsigned, 56> page{
      0x03, 0x01, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00,  // write, asks, 4 bytes
      0x05, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // region, no ticket
      0x0c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // offset 12
      0x00, 0x00, 0x00, 0x00, 0x2a, 0x00, 0x00, 0x00,  // a lead of 4, then the payload
      0x0e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // beat
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  //
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
  ASSERT_EQ(frame.size(), page.size());
  for (std::size_t i = 0; i < page.size(); ++i)
    EXPECT_EQ(std::to_integer<unsigned>(frame[i]), page[i]) << "at " << i;
}

TEST(Frame, KeepsTheWordsOfAWriteWhole) {
  for (std::uint64_t offset = 0; offset < 16; ++offset) {
    const Bytes frame =
        one({.kind = EntryKind::write, .region = kMaxRegions, .value = offset}, Bytes(24));
    FrameReader reader(frame);
    Entry entry;
    ASSERT_TRUE(reader.next(entry));
    EXPECT_EQ(static_cast<std::uint64_t>(entry.payload - frame.data()) % kWordBytes,
              offset % kWordBytes);
  }
}

TEST(Frame, LeavesNothingOfWhatWasInItsBufferBefore) {
  for (const std::size_t bytes : {1U, 7U, 8U, 9U, 15U}) {
    for (const std::uint64_t offset : {0U, 3U, 7U}) {
      const EntryHead head{.kind = EntryKind::write,
                           .bytes = static_cast<std::uint32_t>(bytes),
                           .region = kMaxRegions,
                           .value = offset};
      Bytes buffer(entry_bytes(head), std::byte{0xee});
      std::byte* const payload = begin_entry(buffer.data(), head);
      std::fill_n(payload, bytes, std::byte{0});
      for (const std::byte byte : buffer) ASSERT_NE(byte, std::byte{0xee});
    }
  }
}

TEST(Frame, MayNotBeEmptyNorTooLongNorEndInsideAWord) {
  EXPECT_TRUE(is_garbage({}));
  Bytes beats;
  while (beats.size() <= kMaxFrameBytes) {
    const Bytes beat = one({.kind = EntryKind::beat});
    beats.insert(beats.end(), beat.begin(), beat.end());
  }
  EXPECT_TRUE(is_garbage(beats));
  Bytes frame = one({.kind = EntryKind::beat});
  frame.resize(frame.size() + 4);
  EXPECT_TRUE(is_garbage(frame));
}

TEST(Frame, CutAnywhereIsGarbageOrShorter) {
  FrameBuilder builder;
  builder.add({.kind = EntryKind::put, .region = kMaxRegions, .value = 3}, Bytes(50))
      .add({.kind = EntryKind::fetch_add, .region = kMaxRegions, .value = 8}, Bytes(8))
      .add({.kind = EntryKind::beat});
  const std::size_t ends[] = {80, 112, 136};
  ASSERT_EQ(builder.frame().size(), ends[2]);
  for (std::size_t bytes = 0; bytes < ends[2]; ++bytes) {
    Bytes cut = builder.frame();
    cut.resize(bytes);
    EXPECT_EQ(is_garbage(cut), bytes != ends[0] && bytes != ends[1]) << bytes;
  }
}

TEST(Frame, HasNoFieldThatItsKindDoesNotHave) {
  const EntryHead beat{.kind = EntryKind::beat};
  EXPECT_FALSE(is_garbage(one(beat)));
  const auto with = [&](auto change) {
    EntryHead head = beat;
    change(head);
    return is_garbage(one(head));
  };
  EXPECT_TRUE(with([](EntryHead& h) { h.flags = 1; }));
  EXPECT_TRUE(with([](EntryHead& h) { h.channel = 1; }));
  EXPECT_TRUE(with([](EntryHead& h) { h.region = 1; }));
  EXPECT_TRUE(with([](EntryHead& h) { h.ticket = 1; }));
  EXPECT_TRUE(with([](EntryHead& h) { h.value = 1; }));
  EXPECT_TRUE(with([](EntryHead& h) { h.kind = EntryKind{0}; }));
  EXPECT_TRUE(with([](EntryHead& h) { h.kind = EntryKind{19}; }));
  EXPECT_TRUE(with([](EntryHead& h) { h.kind = EntryKind{255}; }));
  EXPECT_TRUE(is_garbage(one(beat, Bytes(8))));
}

TEST(Frame, KeepsToTheRulesOfEachKind) {
  EXPECT_TRUE(is_garbage(one({.kind = EntryKind::message, .channel = kMaxChannels})));
  EXPECT_TRUE(is_garbage(one({.kind = EntryKind::message}, Bytes(kMaxMessageBytes + 1))));
  EXPECT_FALSE(is_garbage(one({.kind = EntryKind::message}, Bytes(kMaxMessageBytes))));
  EXPECT_TRUE(is_garbage(one({.kind = EntryKind::fetch_add, .region = kMaxRegions}, Bytes(16))));
  EXPECT_TRUE(is_garbage(one({.kind = EntryKind::compare_swap, .region = kMaxRegions}, Bytes(8))));
  EXPECT_TRUE(
      is_garbage(one({.kind = EntryKind::fetch_add, .region = kMaxRegions, .ticket = 1}, Bytes(8))))
      << "a ticket for an answer that is not asked for";
  EXPECT_TRUE(is_garbage(one({.kind = EntryKind::bytes, .flags = kGone}, Bytes(8))));
  EXPECT_TRUE(
      is_garbage(one({.kind = EntryKind::put, .flags = kGone, .region = kMaxRegions}, Bytes(8))));
  EXPECT_TRUE(is_garbage(one({.kind = EntryKind::hello}, Bytes(sizeof(Hello) + 8))));
  EXPECT_FALSE(is_garbage(one({.kind = EntryKind::hello}, Bytes(sizeof(Hello)))));
}

TEST(Frame, HoldsTheLongestAnnouncement) {
  const std::string name(kMaxRegionNameBytes, 'n');
  const std::string text(kMaxLayoutTextBytes, 't');
  const Announcement words{.generation = 5, .layout_hash = 6, .name = name, .layout_text = text};
  Bytes said(words.bytes());
  words.encode(said.data());
  const Bytes frame = one({.kind = EntryKind::announce, .region = kMaxRegions, .value = 64}, said);
  EXPECT_LE(frame.size(), kMinFrameBytes);
  const auto all = read_all(frame);
  ASSERT_EQ(all.size(), 1U);
  const auto heard = decode_announcement(all[0].second);
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->generation, 5U);
  EXPECT_EQ(heard->layout_hash, 6U);
  EXPECT_EQ(heard->name, name);
  EXPECT_EQ(heard->layout_text, text);
}

TEST(Frame, AnnouncesNothingWithoutANameOrWithLengthsThatDoNotFit) {
  const Announcement words{.generation = 1, .layout_hash = 2, .name = "box", .layout_text = "f64"};
  Bytes said(words.bytes());
  words.encode(said.data());
  ASSERT_TRUE(decode_announcement(said));
  for (std::size_t bytes = 0; bytes < said.size(); ++bytes) {
    Bytes cut = said;
    cut.resize(bytes);
    EXPECT_FALSE(decode_announcement(cut)) << bytes;
  }
  for (const std::size_t at : {32U, 33U, 35U, 36U, 39U}) {
    Bytes spoilt = said;
    spoilt[at] ^= std::byte{0x80};
    EXPECT_FALSE(decode_announcement(spoilt)) << at;
  }
  Bytes unprintable = said;
  unprintable[40] = std::byte{7};
  EXPECT_FALSE(decode_announcement(unprintable));
}

/// Whatever comes is read inside its bounds, and what is taken for an entry is one: written again
/// from what was read, it has the same bytes.
TEST(Frame, SpoiltAnyhowIsReadInsideItsBounds) {
  std::minstd_rand random(20'261'122);
  std::size_t sound = 0;
  for (int round = 0; round < 30'000; ++round) {
    FrameBuilder builder;
    const std::size_t entries = 1 + random() % 8;
    for (std::size_t i = 0; i < entries; ++i) test::add_any(builder, random);
    Bytes frame = builder.frame();
    test::spoil(frame, random);
    const Exact exact(frame);
    FrameReader reader(exact.view());
    Entry entry;
    std::size_t at = 0;
    while (reader.next(entry)) {
      const EntryHead& head = entry.head;
      ASSERT_LE(at + entry_bytes(head), frame.size());
      const auto content = entry.content();
      if (!content.empty()) {
        ASSERT_EQ(content.data(),
                  exact.view().data() + at + sizeof head + lead_of(head.kind, head.value));
        ASSERT_LE(content.data() + content.size(), exact.view().data() + frame.size());
      }
      ASSERT_EQ(std::memcmp(&head, frame.data() + at, sizeof head), 0);
      at += entry_bytes(head);
    }
    if (!reader.garbage()) {
      ASSERT_EQ(at, frame.size());
      ++sound;
    }
  }
  EXPECT_GT(sound, 1'000U);
}

}  // namespace
}  // namespace dunlin::stream

#include "multicast/ring.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/rounds.hpp"

/// A sender's ring by itself: what is built is walked, whatever its lengths, nulls and wraps, and
/// nothing in use is written over.
namespace dunlin::multicast {
namespace {

struct Memory {
  explicit Memory(std::size_t bytes, std::size_t slot_bytes = 0)
      : words(bytes / 8), shape{reinterpret_cast<std::byte*>(words.data()), bytes, slot_bytes} {}
  std::vector<std::uint64_t> words;
  RingShape shape;
};

bool put_in(RingWriter& writer, std::string_view text, bool continues = false) {
  std::byte* at = writer.prepare(text.size());
  if (at == nullptr) return false;
  std::ranges::copy(std::as_bytes(std::span(text)), at);
  writer.commit(continues);
  return true;
}

std::string text_of(const Record& record) {
  return {reinterpret_cast<const char*>(record.message.data()), record.message.size()};
}

TEST(Ring, GivesBackWhatWasPutInWithItsSlots) {
  Memory memory(1024);
  RingWriter writer(memory.shape);
  RingCursor cursor(memory.shape);
  ASSERT_TRUE(put_in(writer, "hello"));
  ASSERT_EQ(writer.pass_to(4), 3);
  ASSERT_TRUE(put_in(writer, "", true));
  EXPECT_EQ(writer.real(), 5);
  EXPECT_EQ(writer.taken(), 5);

  ASSERT_EQ(cursor.next(writer.real()), 0);
  EXPECT_EQ(text_of(cursor.take()), "hello");
  ASSERT_EQ(cursor.next(writer.real()), 4);
  const Record second = cursor.take();
  EXPECT_EQ(second.slot, 4);
  EXPECT_TRUE(second.message.empty());
  EXPECT_TRUE(second.continues);
  EXPECT_EQ(cursor.next(writer.real()), kNoSlot);
}

TEST(Ring, MatchesTheExampleOfItsPage) {  // docs/formats/multicast-ring.md
  Memory memory(1024);
  RingWriter writer(memory.shape);
  ASSERT_TRUE(put_in(writer, "hello"));
  ASSERT_EQ(writer.pass_to(3), 2);
  ASSERT_TRUE(put_in(writer, "ok"));
  std::array<char, 26> bytes{};
  std::memcpy(bytes.data(), memory.words.data(), sizeof bytes);
  const std::string expected("\5\0\0\0\0\0\0\0hello\0\0\0\2\0\0\0\2\0\0\0ok", sizeof bytes);
  EXPECT_EQ(std::string(bytes.data(), bytes.size()), expected);
  EXPECT_EQ(writer.head(), 32);
  EXPECT_EQ(writer.real(), 4);
  EXPECT_EQ(writer.taken(), 4);
}

TEST(Ring, TakesOnlyTheBytesUsed) {
  Memory memory(1024);
  RingWriter writer(memory.shape);
  ASSERT_TRUE(put_in(writer, "123456789"));
  EXPECT_EQ(writer.head(), 8 + 16);
  ASSERT_TRUE(put_in(writer, ""));
  EXPECT_EQ(writer.head(), 8 + 16 + 8);
}

TEST(Ring, SaysWhenThereIsNoRoomAndGoesOnWhenThereIs) {
  Memory memory(1024);
  RingWriter writer(memory.shape);
  const std::string quarter(memory.shape.most_message_bytes(), 'x');
  EXPECT_EQ(writer.prepare(quarter.size() + 1), nullptr);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(put_in(writer, quarter));
  EXPECT_EQ(writer.prepare(0), nullptr);
  writer.free_below(1);
  EXPECT_TRUE(put_in(writer, quarter));
  EXPECT_EQ(writer.prepare(0), nullptr);
}

TEST(Ring, KeepsToItsWindow) {
  Memory memory(1024);
  RingWriter writer(memory.shape, 2);
  ASSERT_TRUE(put_in(writer, "a"));
  writer.pass_to(7);  // nulls need no room
  ASSERT_TRUE(put_in(writer, "b"));
  EXPECT_FALSE(put_in(writer, "c"));
  writer.free_below(7);
  EXPECT_TRUE(put_in(writer, "c"));
  EXPECT_FALSE(put_in(writer, "d"));
}

TEST(Ring, CountsMoreNullsThanARecordCan) {
  Memory memory(1024);
  RingWriter writer(memory.shape);
  RingCursor cursor(memory.shape);
  const std::uint64_t many = 11'000'000'000;
  ASSERT_EQ(writer.pass_to(many), many);
  ASSERT_TRUE(put_in(writer, "late"));
  ASSERT_EQ(cursor.next(writer.real()), many);
  EXPECT_EQ(cursor.take().slot, many);
  EXPECT_EQ(cursor.slots(), many + 1);
}

TEST(Ring, TakesNoNullThatItCouldNotCountWhileAMessageIsBuilt) {
  Memory memory(1024);
  RingWriter writer(memory.shape);
  std::byte* at = writer.prepare(1);
  ASSERT_NE(at, nullptr);
  *at = std::byte{'m'};
  const std::uint64_t many = 5'000'000'000;
  EXPECT_EQ(writer.pass_to(many), UINT32_MAX);
  writer.commit();
  EXPECT_EQ(writer.real(), std::uint64_t{UINT32_MAX} + 1);
  EXPECT_EQ(writer.pass_to(many), many - UINT32_MAX - 1);
  RingCursor cursor(memory.shape);
  ASSERT_EQ(cursor.next(writer.real()), UINT32_MAX);
  EXPECT_EQ(text_of(cursor.take()), "m");
}

TEST(Ring, FillsWholeSlotsIfItMust) {
  Memory memory(1024, 64);
  RingWriter writer(memory.shape);
  RingCursor cursor(memory.shape);
  ASSERT_TRUE(put_in(writer, "a"));
  EXPECT_EQ(writer.head(), 64);
  ASSERT_TRUE(put_in(writer, std::string(100, 'b')));
  EXPECT_EQ(writer.head(), 64 + 112);
  ASSERT_NE(cursor.next(writer.real()), kNoSlot);
  cursor.take();
  ASSERT_NE(cursor.next(writer.real()), kNoSlot);
  EXPECT_EQ(text_of(cursor.take()), std::string(100, 'b'));
}

TEST(Ring, NeverReadsOutsideHoweverItWasSpoilt) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2'000; ++round) {
    Memory memory(1024);
    for (std::uint64_t& word : memory.words) {
      word = random();
      if (random() % 4 == 0) word |= 0xffff'fffe;  // skips and nulls
    }
    RingCursor cursor(memory.shape);
    const std::byte* end = memory.shape.memory + memory.shape.bytes;
    for (int i = 0; i < 100 && cursor.next(UINT64_MAX - 1) != kNoSlot; ++i) {
      const Record record = cursor.take();
      ASSERT_GE(record.message.data(), memory.shape.memory);
      ASSERT_LE(record.message.data() + record.message.size(), end);
    }
  }
}

/// What a ring should do, said as simply as can be.
struct Expected {
  std::uint64_t slot;
  std::string text;
  bool continues;
};

TEST(Ring, KeepsEverythingInUseThroughManyRounds) {
  for (std::uint64_t seed = 0; seed < test::rounds(300); ++seed) {
    std::mt19937_64 random(seed);
    const std::size_t slot = seed % 3 == 0 ? 48 : 0;
    Memory memory(std::size_t{1024} << random() % 3, slot);
    RingWriter writer(memory.shape);
    RingCursor cursor(memory.shape);
    std::deque<Expected> in_use;
    std::size_t read = 0;  // of those in use
    std::uint64_t slots = 0;
    for (int step = 0; step < 2'000; ++step) {
      const std::uint64_t what = random() % 8;
      if (what < 3) {
        std::string text(random() % (memory.shape.most_message_bytes() + 1), '\0');
        if (random() % 2 == 0) text.resize(text.size() % 20);
        for (char& c : text) c = static_cast<char>(random());
        const bool continues = random() % 5 == 0;
        if (put_in(writer, text, continues)) in_use.push_back({slots++, text, continues});
      } else if (what == 3) {
        slots += random() % 10;
        writer.pass_to(slots);
      } else if (what < 6 && read < in_use.size()) {
        ASSERT_EQ(cursor.next(writer.real()), in_use[read].slot) << "seed " << seed;
        const Record record = cursor.take();
        EXPECT_EQ(text_of(record), in_use[read].text) << "seed " << seed;
        EXPECT_EQ(record.continues, in_use[read].continues);
        ++read;
      } else if (read > 0) {
        const std::size_t freed = random() % (read + 1);
        if (freed > 0) writer.free_below(in_use[freed - 1].slot + 1);
        in_use.erase(in_use.begin(), in_use.begin() + static_cast<std::ptrdiff_t>(freed));
        read -= freed;
      }
      ASSERT_EQ(writer.taken(), slots);
      ASSERT_EQ(writer.in_use(), in_use.size());
      // All that is in use is as it was.
      RingCursor again = writer.tail();
      for (const Expected& expected : in_use) {
        ASSERT_EQ(again.next(writer.real()), expected.slot) << "seed " << seed;
        ASSERT_EQ(text_of(again.take()), expected.text) << "seed " << seed;
      }
    }
  }
}

TEST(Ring, RunsCoverExactlyWhatWasBuilt) {
  Memory memory(1024);
  for (std::uint64_t from = 0; from < 4'096; from += 8) {
    for (std::uint64_t bytes = 0; bytes <= 1024; bytes += 8) {
      std::uint64_t at = from;
      int runs = 0;
      for (; at != from + bytes; ++runs) {
        const RingRun run = first_run(memory.shape, at, from + bytes);
        ASSERT_EQ(run.place, at % 1024);
        ASSERT_LE(run.place + run.bytes, 1024);
        at += run.bytes;
      }
      ASSERT_LE(runs, 2);
    }
  }
}

}  // namespace
}  // namespace dunlin::multicast

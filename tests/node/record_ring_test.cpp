#include <atomic>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/node/record_ring.hpp>

namespace dunlin::node {
namespace {

bool put(RecordRing& ring, const std::string& text) {
  RecordRing::Claim why;
  std::byte* const record = ring.claim(text.size(), why);
  if (record == nullptr) return false;
  std::memcpy(record, text.data(), text.size());
  ring.publish(record, text.size());
  return true;
}

std::vector<std::string> take_all(RecordRing& ring) {
  std::vector<std::string> texts;
  ring.read([&](std::span<const std::byte> record) {
    texts.emplace_back(reinterpret_cast<const char*>(record.data()), record.size());
    return true;
  });
  return texts;
}

TEST(RecordRing, GivesRecordsOfAllSizesInOrderRoundTheEnd) {
  RecordRing ring(1'024);
  for (std::size_t round = 0; round < 1'000; ++round) {
    std::vector<std::string> sent;
    for (std::size_t i = 0; i < 3; ++i) {
      sent.emplace_back(round * 7 % (ring.longest() - 60) + 13 * i, static_cast<char>('a' + i));
      ASSERT_TRUE(put(ring, sent.back()));
    }
    ASSERT_EQ(take_all(ring), sent);
    ASSERT_TRUE(ring.empty());
  }
}

TEST(RecordRing, RefusesWhatHasNoRoomAndTakesItAgainLater) {
  RecordRing ring(1'024);
  std::size_t taken = 0;
  while (put(ring, std::string(100, 'x'))) ++taken;
  EXPECT_EQ(taken, 8U);
  RecordRing::Claim why;
  EXPECT_EQ(ring.claim(100, why), nullptr);
  EXPECT_EQ(why, RecordRing::Claim::full);
  EXPECT_EQ(ring.claim(ring.longest() + 1, why), nullptr);
  EXPECT_EQ(why, RecordRing::Claim::too_long);
  EXPECT_EQ(take_all(ring).size(), taken);
  EXPECT_TRUE(put(ring, "again"));
}

TEST(RecordRing, KeepsTheRecordThatItsReaderDoesNotTake) {
  RecordRing ring(1'024);
  ASSERT_TRUE(put(ring, "a"));
  ASSERT_TRUE(put(ring, "b"));
  EXPECT_EQ(ring.read([](std::span<const std::byte>) { return false; }), 0U);
  EXPECT_EQ(take_all(ring), (std::vector<std::string>{"a", "b"}));
}

TEST(RecordRing, TakesNothingOnceItIsClosed) {
  RecordRing ring(1'024);
  ASSERT_TRUE(put(ring, "before"));
  ring.close();
  EXPECT_FALSE(put(ring, "after"));
  RecordRing::Claim why;
  EXPECT_EQ(ring.claim(1, why), nullptr);
  EXPECT_EQ(why, RecordRing::Claim::closed);
  EXPECT_EQ(take_all(ring), (std::vector<std::string>{"before"}));
  EXPECT_TRUE(ring.empty());
}

/// Each record says which thread wrote it, and the how-manieth of that thread it is.
TEST(RecordRing, KeepsTheOrderOfEachOfEightThreads) {
  constexpr std::uint32_t kThreads = 8, kRecords = 20'000;
  RecordRing ring(4'096);
  std::vector<std::jthread> writers;
  for (std::uint32_t thread = 0; thread < kThreads; ++thread)
    writers.emplace_back([&ring, thread] {
      for (std::uint32_t i = 0; i < kRecords; ++i) {
        const std::string text =
            std::to_string(thread) + " " + std::to_string(i) + std::string(i % 90, '.');
        while (!put(ring, text)) std::this_thread::yield();
      }
    });
  std::vector<std::uint32_t> next(kThreads);
  std::uint32_t seen = 0;
  while (seen < kThreads * kRecords) {
    const std::size_t taken = ring.read([&](std::span<const std::byte> record) {
      const std::string text(reinterpret_cast<const char*>(record.data()), record.size());
      const std::uint32_t thread = static_cast<std::uint32_t>(std::stoul(text));
      const std::uint32_t i = static_cast<std::uint32_t>(std::stoul(text.substr(2)));
      EXPECT_EQ(i, next[thread]++);
      EXPECT_EQ(text.size(), 2 + std::to_string(i).size() + i % 90);
      return true;
    });
    seen += static_cast<std::uint32_t>(taken);
    if (taken == 0) std::this_thread::yield();
  }
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace dunlin::node

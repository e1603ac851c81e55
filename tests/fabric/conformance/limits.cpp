#include <array>
#include <string>
#include <vector>

#include "fabric/conformance/expect_error.hpp"
#include "fabric/conformance/harness.hpp"
#include "fabric/conformance/pattern.hpp"

/// At each limit things work; over it they are refused, and nothing is dropped.
namespace dunlin::conformance {

TEST_P(Limits, AreStatedAndSensible) {
  start(2);
  const Properties& p = node(0).properties();
  EXPECT_GE(p.max_peers, 1U);
  EXPECT_GE(p.queue_slots, 1U);
  EXPECT_FALSE(node(0).kind().empty());
}

TEST_P(Limits, TheLargestMessageAndTheEmptyOneArrive) {
  start(2);
  std::vector<std::vector<std::byte>> heard;
  node(1).receive(kMaxChannels - 1, [&](Rank, std::span<const std::byte> message) {
    heard.emplace_back(message.begin(), message.end());
  });
  std::array<std::byte, kMaxMessageBytes> largest{};
  fill_pattern(largest, 1);
  send(0, 1, kMaxChannels - 1, largest);
  send(0, 1, kMaxChannels - 1, {});
  until("both messages are heard", [&] { return heard.size() == 2; });
  ASSERT_EQ(heard[0].size(), kMaxMessageBytes);
  EXPECT_TRUE(has_pattern(heard[0], 1));
  EXPECT_TRUE(heard[1].empty());
}

TEST_P(Limits, AFullWayPushesBackAndLosesNothing) {
  start(2);
  std::vector<std::uint64_t> heard;
  node(1).receive(0, [&](Rank, std::span<const std::byte> message) {
    heard.push_back(message.size() == 200 && has_pattern(message, heard.size() + 1) ? 1 : 0);
  });
  constexpr std::uint64_t kTooMany = 100'000;
  std::array<std::byte, 200> message{};
  std::uint64_t sent = 0;
  Refusal refusal = Refusal::none;
  fill_pattern(message, 1);
  until("the way is open", [&] { return node(0).send(1, 0, message) == Refusal::none; });
  ++sent;
  while (sent < kTooMany) {
    fill_pattern(message, sent + 1);
    refusal = node(0).send(1, 0, message);
    if (refusal != Refusal::none) break;
    ++sent;
  }
  ASSERT_EQ(refusal, Refusal::queue_full) << "after " << sent << " messages to a deaf peer";
  const std::uint64_t total = sent + 100;
  until("the rest is sent", [&] {
    fill_pattern(message, sent + 1);
    if (sent < total && node(0).send(1, 0, message) == Refusal::none) ++sent;
    return sent == total;
  });
  until("all messages are heard", [&] { return heard.size() == total; });
  EXPECT_EQ(heard, std::vector<std::uint64_t>(total, 1));
}

TEST_P(Limits, AFullWayToOnePeerDoesNotHinderTheOthers) {
  start(3);
  std::uint64_t heard = 0;
  node(2).receive(0, [&](Rank, std::span<const std::byte>) { ++heard; });
  std::array<std::byte, 100> message{};
  for (int i = 0; i < 100'000; ++i) {
    if (node(0).send(1, 0, message) != Refusal::none) break;
  }
  ASSERT_EQ(node(0).send(1, 0, message), Refusal::queue_full);
  send(0, 2, 0, message);
  until("the other hears", [&] { return heard == 1; });
}

TEST_P(Limits, TheLastBytesOfARegionAreReached) {
  start(2);
  const Shared box = share("box", 1001);
  alignas(8) std::array<std::byte, 8> source{};
  alignas(8) std::array<std::byte, 8> target{};
  fill_pattern(source, 2);
  post_and_finish(0, write(1, box.id(0), 992, source.data(), 8));
  post_and_finish(0, put(1, box.id(0), 993, source.data(), 8));
  post_and_finish(0, read(1, box.id(0), 1000, target.data(), 1));
  EXPECT_EQ(target[0], source[7]);
  EXPECT_EQ(target[1], std::byte{0});
  post_and_finish(0, write(1, box.id(0), 1000, source.data(), 1));
  EXPECT_EQ(box.memory(1)[1000], source[0]);
  post_and_finish(0, fetch_add(1, box.id(0), 984, 3, nullptr));
  EXPECT_EQ(box.load(1, 984), 3U);
}

TEST_P(Limits, WholeLargeRegionsAreReachedAtOnce) {
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  start(2);
  const Shared box = share("box", kBytes);
  alignas(8) static std::array<std::byte, kBytes> source;
  fill_pattern(source, 6);
  post_and_finish(0, write(1, box.id(0), 0, source.data(), kBytes));
  EXPECT_TRUE(has_pattern({box.memory(1), kBytes}, 6));
}

TEST_P(Limits, MemoryIsZeroedAndAlignedToLines) {
  start(2);
  for (const std::size_t bytes : {1U, 64U, 100U, 5000U}) {
    const Shared box = share("box" + std::to_string(bytes), bytes);
    for (const Rank r : {0U, 1U}) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(box.memory(r)) % kCacheLineBytes, 0U);
      for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(box.memory(r)[i], std::byte{0});
    }
  }
}

TEST_P(Limits, AllRegionsThatAFabricMayHaveWork) {
  start(2);
  std::vector<Shared> boxes;
  for (std::uint32_t i = 0; i < kMaxRegions; ++i) {
    boxes.push_back(share("box" + std::to_string(i), 64));
  }
  std::uint64_t value = 0;
  for (const Shared& box : boxes) {
    ++value;
    post_and_finish(0, write(1, box.id(0), 8, &value, 8));
  }
  for (std::uint64_t i = 0; i < boxes.size(); ++i) EXPECT_EQ(boxes[i].load(1, 8), i + 1);
  expect_error([&] { group().allocate(0, {.name = "another", .bytes = 64}); }, "kMaxRegions");
  group().release(0, boxes[7].id(0));
  EXPECT_EQ(group().allocate(0, {.name = "another", .bytes = 64}).memory().size(), 64U);
}

TEST_P(Limits, RegionsComeAndGoForEver) {
  start(2);
  for (std::uint64_t round = 1; round <= 2 * kMaxRegions + 10; ++round) {
    const Shared box = share("box", 64);
    ASSERT_EQ(box.load(1, 0), 0U);
    post_and_finish(0, write(1, box.id(0), 0, &round, 8));
    ASSERT_EQ(box.load(1, 0), round);
    group().release(0, box.id(0));
    group().release(1, box.id(1));
  }
}

TEST_P(Limits, OnNamesAndSizesAreQuotedByName) {
  start(2);
  const std::string longest(kMaxRegionNameBytes, 'n');
  share(longest, 64);
  const std::string text(kMaxLayoutTextBytes, 't');
  group().allocate(0, {.name = "described", .bytes = 64, .layout_text = text});
  expect_error([&] { group().allocate(0, {.name = longest + "n", .bytes = 64}); },
               "kMaxRegionNameBytes");
  expect_error([&] { group().allocate(0, {.name = "", .bytes = 64}); }, "kMaxRegionNameBytes");
  expect_error([&] { group().allocate(0, {.name = "x", .bytes = kMaxRegionBytes + 1}); },
               "kMaxRegionBytes");
  expect_error([&] { group().allocate(0, {.name = "x", .bytes = 0}); }, "x");
  expect_error([&] { group().allocate(0, {.name = "x", .bytes = 64, .layout_text = text + "t"}); },
               "kMaxLayoutTextBytes");
  // None of them has cost an generation or a slot.
  share("x", 64);
}

TEST_P(Limits, OperationsOnNothingAreDone) {
  start(2);
  const Shared box = share("box", 64);
  memory::store(box.word(1, 0), 77);
  alignas(8) std::array<std::byte, 8> mine{std::byte{5}};
  for (const std::uint64_t offset : {0U, 64U}) {
    post_and_finish(0, put(1, box.id(0), offset, mine.data(), 0));
    post_and_finish(0, write(1, box.id(0), offset, mine.data(), 0));
    post_and_finish(0, read(1, box.id(0), offset, mine.data(), 0));
  }
  EXPECT_EQ(box.load(1, 0), 77U);
  EXPECT_EQ(mine[0], std::byte{5});
}

}  // namespace dunlin::conformance

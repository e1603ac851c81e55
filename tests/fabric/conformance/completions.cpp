#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "fabric/conformance/harness.hpp"
#include "fabric/conformance/pattern.hpp"

/// FAB-F4: what a finished Completion proves.
namespace dunlin::conformance {

TEST_P(Completions, AreFinishedBeforeTheyAreUsed) {
  const Completion done;
  EXPECT_TRUE(done.finished());
  EXPECT_FALSE(done.failed());
  EXPECT_EQ(done.failures(), 0U);
}

TEST_P(Completions, OfAPutSayThatItsSourceMayBeReused) {
  constexpr std::size_t kMost = 20'000;
  start(2);
  const Shared box = share("box", kMost + 8);
  std::vector<std::byte> source(kMost);
  std::uint64_t round = 0;
  for (const std::size_t bytes : {1U, 8U, 64U, 100U, 1000U, 4096U, 20'000U}) {
    ++round;
    fill_pattern({source.data(), bytes}, round);
    post_and_finish(0, put(1, box.id(0), 8, source.data(), bytes), Notify::locally);
    std::fill(source.begin(), source.end(), std::byte{0xee});
    post(0, write(1, box.id(0), 0, &round, 8));
    until("the signal has arrived", [&] { return box.load(1, 0) == round; });
    ASSERT_TRUE(has_pattern({box.memory(1) + 8, bytes}, round)) << bytes << " bytes";
  }
}

TEST_P(Completions, AreNotNeededToReuseAnInlineSource) {
  start(2);
  const std::size_t bytes = std::min<std::size_t>(node(0).properties().max_inline_bytes, 4096);
  const Shared box = share("box", 8192);
  std::vector<std::uint64_t> source((bytes + 7) / 8);
  const std::span<std::byte> as_bytes = std::as_writable_bytes(std::span(source)).first(bytes);
  if (bytes == 0) GTEST_SKIP() << "nothing goes inline on this fabric";
  for (std::uint64_t round = 1; round <= 50; ++round) {
    fill_pattern(as_bytes, round);
    post(0, write(1, box.id(0), 64, as_bytes.data(), bytes));
    std::fill(as_bytes.begin(), as_bytes.end(), std::byte{0xee});
    const std::uint64_t add = 1;
    post_and_finish(0, fetch_add(1, box.id(0), 0, add, nullptr));
    ASSERT_TRUE(has_pattern({box.memory(1) + 64, bytes}, round));
  }
}

TEST_P(Completions, OfARemoteNotificationSayThatTheBytesArePlaced) {
  constexpr std::size_t kMost = 100'000;
  start(2);
  const Shared box = share("box", kMost);
  std::vector<std::byte> source(kMost);
  std::uint64_t round = 0;
  for (const std::size_t bytes : {1U, 8U, 64U, 1000U, 4096U, 100'000U}) {
    fill_pattern({source.data(), bytes}, ++round);
    post_and_finish(0, put(1, box.id(0), 0, source.data(), bytes), Notify::remotely);
    ASSERT_TRUE(has_pattern({box.memory(1), bytes}, round)) << "put of " << bytes;
    fill_pattern({source.data(), bytes}, ++round);
    post_and_finish(0, write(1, box.id(0), 0, source.data(), bytes), Notify::remotely);
    ASSERT_TRUE(has_pattern({box.memory(1), bytes}, round)) << "write of " << bytes;
  }
}

TEST_P(Completions, OfAReadSayThatTheBytesAreHere) {
  constexpr std::size_t kMost = 1 << 20;
  start(2);
  const Shared box = share("box", kMost);
  fill_pattern({box.memory(1), kMost}, 4);
  std::vector<std::byte> target(kMost);
  for (const std::size_t bytes : {1U, 2U, 7U, 8U, 64U, 65U, 1000U, 4096U, 1U << 20}) {
    std::fill(target.begin(), target.end(), std::byte{0});
    post_and_finish(0, read(1, box.id(0), 0, target.data(), bytes), Notify::locally);
    ASSERT_TRUE(has_pattern({target.data(), bytes}, 4)) << bytes << " bytes";
    for (std::size_t i = bytes; i < std::min(bytes + 64, kMost); ++i) {
      ASSERT_EQ(target[i], std::byte{0});
    }
  }
}

TEST_P(Completions, OfReadsBeginAnywhereInALine) {
  start(2);
  const Shared box = share("box", 512);
  fill_pattern({box.memory(1), 512}, 4);
  alignas(64) std::array<std::byte, 512> target{};
  for (std::size_t offset = 0; offset < 80; ++offset) {
    for (const std::size_t bytes : {1U, 5U, 8U, 17U, 64U, 131U}) {
      std::memset(target.data(), 0, target.size());
      post_and_finish(0, read(1, box.id(0), offset, target.data() + offset, bytes));
      const auto* expected = box.memory(1) + offset;
      ASSERT_EQ(std::memcmp(target.data() + offset, expected, bytes), 0)
          << bytes << " bytes at " << offset;
      ASSERT_EQ(target[offset + bytes], std::byte{0});
    }
  }
}

TEST_P(Completions, OfWritesAndPutsLeaveTheBytesBesideThemAlone) {
  start(2);
  const Shared box = share("box", 512);
  alignas(64) std::array<std::byte, 512> source{};
  fill_pattern(source, 9);
  for (std::size_t offset = 8; offset < 80; ++offset) {
    for (const std::size_t bytes : {1U, 5U, 8U, 17U, 64U, 131U}) {
      std::memset(box.memory(1), 0, 512);
      const bool as_put = (offset + bytes) % 2 == 0;
      const Operation op = as_put ? put(1, box.id(0), offset, source.data() + offset, bytes)
                                  : write(1, box.id(0), offset, source.data() + offset, bytes);
      post_and_finish(0, op);
      const std::byte* target = box.memory(1) + offset;
      ASSERT_EQ(std::memcmp(target, source.data() + offset, bytes), 0);
      ASSERT_EQ(target[-1], std::byte{0});
      ASSERT_EQ(target[bytes], std::byte{0}) << bytes << " bytes at " << offset;
    }
  }
}

TEST_P(Completions, CountAllOperationsPostedWithThem) {
  start(3);
  const Shared box = share("box", 4096);
  std::vector<std::uint64_t> source(40);
  std::uint64_t fetched = 0;
  Completion done;
  for (std::uint64_t i = 0; i < source.size(); ++i) {
    source[i] = i + 1;
    const Rank to = i % 2 == 0 ? 1 : 2;
    post(0, write(to, box.id(0), 8 * i, &source[i], 8).notify(done, Notify::remotely));
  }
  post(0, read(2, box.id(0), 8, &fetched, 8).notify(done));
  until_finished(done);
  for (std::uint64_t i = 0; i < source.size(); ++i) {
    ASSERT_EQ(box.load(i % 2 == 0 ? 1 : 2, 8 * i), i + 1);
  }
  EXPECT_FALSE(done.failed());
}

TEST_P(Completions, MayBeUsedAgain) {
  start(2);
  const Shared box = share("box", 64);
  Completion done;
  for (std::uint64_t round = 1; round <= 100; ++round) {
    std::uint64_t fetched = 0;
    post(0, write(1, box.id(0), 0, &round, 8).notify(done, Notify::remotely));
    until_finished(done);
    post(0, read(1, box.id(0), 0, &fetched, 8).notify(done));
    until_finished(done);
    ASSERT_EQ(fetched, round);
  }
}

TEST_P(Completions, ThatWereAbandonedMayBeFreedAtOnce) {
  constexpr std::size_t kBytes = 10'000;
  start(2);
  const Shared box = share("box", kBytes);
  for (int round = 0; round < 20; ++round) {
    auto done = std::make_unique<Completion>();
    auto target = std::make_unique<std::array<std::byte, kBytes>>();
    auto before = std::make_unique<std::uint64_t>();
    post(0, read(1, box.id(0), 0, target->data(), kBytes).notify(*done));
    post(0, put(1, box.id(0), 0, target->data(), kBytes).notify(*done, Notify::remotely));
    post(0, fetch_add(1, box.id(0), 0, 1, before.get()).notify(*done));
    node(0).abandon(*done);
    EXPECT_TRUE(done->finished());
  }
  let_time_pass();
  std::uint64_t fetched = 0;
  post_and_finish(0, read(1, box.id(0), 64, &fetched, 8));
}

TEST_P(Completions, ThatWereAbandonedAreAsGoodAsNew) {
  start(2);
  const Shared box = share("box", 64);
  Completion done;
  std::uint64_t thrown_away = 0;
  std::uint64_t fetched = 0;
  memory::store(box.word(1, 8), 12);
  for (int round = 0; round < 20; ++round) {
    post(0, read(1, box.id(0), 0, &thrown_away, 8).notify(done));
    node(0).abandon(done);
    fetched = 0;
    post(0, read(1, box.id(0), 8, &fetched, 8).notify(done));
    until_finished(done);
    ASSERT_EQ(fetched, 12U);
  }
}

TEST_P(Completions, OfOthersAreNotTouchedByAbandon) {
  start(2);
  const Shared box = share("box", 64);
  memory::store(box.word(1, 8), 12);
  Completion given_up;
  Completion kept;
  std::uint64_t thrown_away = 0;
  std::uint64_t fetched = 0;
  post(0, read(1, box.id(0), 0, &thrown_away, 8).notify(given_up));
  post(0, read(1, box.id(0), 8, &fetched, 8).notify(kept));
  node(0).abandon(given_up);
  until_finished(kept);
  EXPECT_EQ(fetched, 12U);
}

TEST_P(Completions, ThatNothingUsesMayBeAbandoned) {
  start(2);
  Completion done;
  node(0).abandon(done);
  EXPECT_TRUE(done.finished());
}

}  // namespace dunlin::conformance

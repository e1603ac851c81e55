#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <vector>

#include "fabric/conformance/harness.hpp"
#include "fabric/conformance/pattern.hpp"

/// A batch is posted in order; what is refused and all behind it is not posted.
namespace dunlin::conformance {

namespace {

std::vector<std::uint64_t> numbers(std::uint64_t count) {
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), 1);
  return all;
}

}  // namespace

TEST_P(Batches, OfNothingAreAccepted) {
  start(2);
  const Posted posted = node(0).post(std::span<const Operation>());
  EXPECT_EQ(posted.accepted, 0U);
  EXPECT_TRUE(posted.all());
}

TEST_P(Batches, ReportHowManyWereAccepted) {
  start(2);
  const Shared box = share("box", 64);
  const std::uint64_t value = 5;
  Completion done;
  const std::array<Operation, 2> batch{
      write(1, box.id(0), 0, &value, 8),
      write(1, box.id(0), 8, &value, 8).notify(done, Notify::remotely)};
  const Posted posted = node(0).post(batch);
  EXPECT_EQ(posted.accepted, 2U);
  EXPECT_TRUE(posted.all());
  until_finished(done);
  EXPECT_EQ(box.load(1, 0), 5U);
  EXPECT_EQ(box.load(1, 8), 5U);
}

TEST_P(Batches, AreAppliedInOrder) {
  constexpr std::uint64_t kBatches = 200;
  constexpr std::uint64_t kEach = 8;
  start(2);
  const Shared box = share("box", 64);
  const std::vector<std::uint64_t> source = numbers(kBatches * kEach);
  std::uint64_t posted = 0;
  std::uint64_t last = 0;
  std::uint64_t went_back = 0;
  run("the last value has arrived", {[&] {
                                       std::vector<Operation> batch;
                                       for (std::uint64_t i = posted;
                                            i < source.size() && batch.size() < kEach; ++i) {
                                         batch.push_back(write(1, box.id(0), 0, &source[i], 8));
                                       }
                                       posted += node(0).post(batch).accepted;
                                       return posted == source.size();
                                     },
                                     [&] {
                                       const std::uint64_t now = box.load(1, 0);
                                       if (now < last) ++went_back;
                                       last = now;
                                       return now == source.back();
                                     }});
  EXPECT_EQ(went_back, 0U);
}

TEST_P(Batches, ToSeveralPeersKeepTheOrderOfEach) {
  constexpr std::uint64_t kRounds = 300;
  start(3);
  const Shared box = share("box", 128);
  const std::vector<std::uint64_t> source = numbers(kRounds);
  std::array<std::uint64_t, 3> overtaken{};
  std::vector<Operation> all;
  for (const std::uint64_t& value : source) {
    for (const std::size_t offset : {0U, 64U}) {
      for (const Rank to : {1U, 2U, 0U}) all.push_back(write(to, box.id(0), offset, &value, 8));
    }
  }
  std::size_t posted = 0;
  const auto watch = [&](Rank self) {
    const std::uint64_t second = box.load(self, 64);
    if (box.load(self, 0) < second) ++overtaken[self];
    return second == kRounds;
  };
  run("the last value is everywhere", {[&] {
                                         posted +=
                                             node(0).post(std::span(all).subspan(posted)).accepted;
                                         return posted == all.size() && watch(0);
                                       },
                                       [&] { return watch(1); }, [&] { return watch(2); }});
  EXPECT_EQ(overtaken, (std::array<std::uint64_t, 3>{}));
}

TEST_P(Batches, StopAtTheFirstRefusal) {
  start(2);
  const Shared box = share("box", 64);
  const std::uint64_t value = 5;
  const std::uint64_t signal = 1;
  const std::array<Operation, 4> batch{
      write(1, box.id(0), 0, &value, 8), write(1, box.id(0), 8, &value, 8),
      write(1, box.id(0), 64, &value, 8), write(1, box.id(0), 16, &value, 8)};
  const Posted posted = node(0).post(batch);
  EXPECT_EQ(posted.accepted, 2U);
  EXPECT_EQ(posted.refusal, Refusal::out_of_bounds);
  post_and_finish(0, write(1, box.id(0), 24, &signal, 8));
  EXPECT_EQ(box.load(1, 0), 5U);
  EXPECT_EQ(box.load(1, 8), 5U);
  EXPECT_EQ(box.load(1, 16), 0U);
}

TEST_P(Batches, DoNotCountARefusedOperationInItsCompletion) {
  start(2);
  const Shared box = share("box", 64);
  const std::uint64_t value = 5;
  Completion done;
  const std::array<Operation, 3> batch{write(1, box.id(0), 0, &value, 8).notify(done),
                                       write(1, box.id(0), 61, &value, 8).notify(done),
                                       write(1, box.id(0), 8, &value, 8).notify(done)};
  EXPECT_EQ(node(0).post(batch).accepted, 1U);
  until_finished(done);
  EXPECT_FALSE(done.failed());
}

TEST_P(Batches, OverTheQueueAreTakenInPartsAndNothingIsLost) {
  start(2);
  const std::uint64_t count = std::min<std::uint64_t>(node(0).properties().queue_slots, 2'000) * 3;
  const Shared box = share("box", 8 * count);
  const std::vector<std::uint64_t> source = numbers(count);
  std::vector<Operation> all;
  Completion done;
  for (std::uint64_t i = 0; i < count; ++i) {
    all.push_back(write(1, box.id(0), 8 * i, &source[i], 8).notify(done, Notify::remotely));
  }
  std::size_t taken = 0;
  std::size_t refused_otherwise = 0;
  until("all operations are taken", [&] {
    const Posted posted = node(0).post(std::span(all).subspan(taken));
    taken += posted.accepted;
    if (!posted.all() && posted.refusal != Refusal::queue_full) ++refused_otherwise;
    return taken == count || refused_otherwise > 0;
  });
  until_finished(done);
  EXPECT_EQ(refused_otherwise, 0U);
  EXPECT_FALSE(done.failed());
  for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(box.load(1, 8 * i), source[i]);
}

TEST_P(Batches, OfUnsignalledOperationsAreCoveredByALaterSignal) {
  constexpr std::size_t kPieces = 20;
  constexpr std::size_t kPieceBytes = 300;
  start(2);
  const Shared box = share("box", 8192);
  std::array<std::byte, kPieces * kPieceBytes> source{};
  fill_pattern(source, 1);
  for (std::size_t i = 0; i < kPieces; ++i) {
    const std::size_t at = (kPieces - 1 - i) * kPieceBytes;
    post(0, put(1, box.id(0), at, source.data() + at, kPieceBytes));
  }
  const std::uint64_t signal = 1;
  post_and_finish(0, write(1, box.id(0), 8184, &signal, 8));
  EXPECT_TRUE(has_pattern({box.memory(1), source.size()}, 1));
}

TEST_P(Batches, MayMixAllKindsOfOperations) {
  start(2);
  const Shared box = share("box", 256);
  memory::store(box.word(1, 128), 11);
  std::array<std::byte, 50> source{};
  fill_pattern(source, 3);
  const std::uint64_t value = 6;
  std::uint64_t fetched = 0;
  std::uint64_t before = 99;
  std::uint64_t swapped = 99;
  Completion done;
  const std::vector<Operation> batch{put(1, box.id(0), 3, source.data(), source.size()),
                                     write(1, box.id(0), 64, &value, 8),
                                     fetch_add(1, box.id(0), 72, 4, &before).notify(done),
                                     read(1, box.id(0), 128, &fetched, 8).notify(done),
                                     compare_swap(1, box.id(0), 72, 4, 5, &swapped).notify(done)};
  std::size_t taken = 0;
  until("the batch is taken", [&] {
    taken += node(0).post(std::span(batch).subspan(taken)).accepted;
    return taken == batch.size();
  });
  until_finished(done);
  EXPECT_EQ(before, 0U);
  EXPECT_EQ(swapped, 4U);
  EXPECT_EQ(fetched, 11U);
  EXPECT_EQ(box.load(1, 64), 6U);
  EXPECT_EQ(box.load(1, 72), 5U);
  EXPECT_TRUE(has_pattern({box.memory(1) + 3, source.size()}, 3));
}

TEST_P(Batches, OfWhichMoreFollowsAreSeenBeforeIt) {
  start(2);
  const Shared box = share("box", 65'536);
  std::vector<std::byte> source(50'000);
  std::uint64_t signal = 0;
  for (const std::size_t bytes : {8U, 600U, 5'000U, 20'000U, 50'000U}) {
    ++signal;
    const std::span part = std::span(source).first(bytes);
    fill_pattern(part, signal);
    post(0, put(1, box.id(0), 64, part.data(), bytes).more_follows());
    post(0, write(1, box.id(0), 0, &signal, 8));
    if (bytes <= node(0).properties().max_inline_bytes) fill_pattern(part, signal + 100);
    until("the signal is seen", [&] { return box.load(1, 0) == signal; });
    EXPECT_TRUE(has_pattern({box.memory(1) + 64, bytes}, signal)) << bytes;
  }
}

TEST_P(Batches, OfWhichMoreFollowsArriveThoughNothingDoes) {
  start(2);
  const Shared box = share("box", 65'536);
  std::vector<std::byte> source(20'000);
  std::uint64_t round = 0;
  for (const std::size_t bytes : {8U, 600U, 20'000U}) {
    const std::span part = std::span(source).first(bytes);
    fill_pattern(part, ++round);
    Completion done;
    const Operation alone = put(1, box.id(0), 64, part.data(), bytes).more_follows();
    post(0, alone.notify(done, Notify::remotely));
    node(0).poll();
    if (bytes <= node(0).properties().max_inline_bytes) fill_pattern(part, round + 100);
    until_finished(done);
    EXPECT_TRUE(has_pattern({box.memory(1) + 64, bytes}, round)) << bytes;
  }
}

TEST_P(Batches, OfWhichMoreFollowsSurviveTheReleaseOfTheirSource) {
  start(2);
  const Shared box = share("box", 65'536);
  constexpr std::size_t kBytes = 20'000;
  if (kBytes > node(0).properties().max_inline_bytes)
    GTEST_SKIP() << "the source belongs to the device until it has sent it";
  std::optional<Region> source = node(0).allocate({.name = "source", .bytes = kBytes});
  fill_pattern(source->memory(), 1);
  const Operation put_all = put(1, box.id(0), 64, source->memory().data(), kBytes).more_follows();
  post(0, put_all);
  source.reset();
  const std::uint64_t signal = 1;
  post_and_finish(0, write(1, box.id(0), 0, &signal, 8));
  EXPECT_TRUE(has_pattern({box.memory(1) + 64, kBytes}, 1));
}

}  // namespace dunlin::conformance

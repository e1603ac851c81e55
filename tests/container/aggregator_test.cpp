#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <dunlin/error.hpp>

#include "container/clusters.hpp"

namespace dunlin {
namespace {

using container::Handled;
using container::MapCall;
using remote::Status;

struct Aggregators : test::OnContainers {
  using Words = Aggregator<std::uint64_t>;
  void start_words(std::uint32_t members, const AggregatorOptions& options) {
    start(members);
    got.assign(members, std::vector<std::vector<std::uint64_t>>(members));
    for (Rank rank = 0; rank < members; ++rank)
      all.push_back(std::make_unique<Words>(
          (*cluster)[rank], options,
          [this, rank](Rank from, const std::uint64_t& word) { got[rank][from].push_back(word); }));
  }
  void push(Rank by, Rank to, std::uint64_t word) {
    EXPECT_TRUE(cluster->until([&] { return all[by]->push(to, word); }));
  }
  Status flush(Rank by) { return cluster->end_of(all[by]->begin_flush()); }

  std::vector<std::vector<std::vector<std::uint64_t>>> got;  // [target][origin]
  std::vector<std::unique_ptr<Words>> all;
};

DUNLIN_RUN_ON(test::container_cases({Style::one_sided}), Aggregators);

TEST_P(Aggregators, BringEachElementOnceAndInOrder) {
  constexpr std::uint64_t kElements = 100;  // more than all batches of a target hold
  start_words(3, {.name = "words", .elements = 7, .batches = 2});
  for (std::uint64_t i = 0; i < kElements; ++i)
    for (Rank by = 0; by < 3; ++by)
      for (Rank to = 0; to < 3; ++to) push(by, to, by * 1000 + i);
  for (Rank by = 0; by < 3; ++by) EXPECT_EQ(flush(by), Status::ok);
  for (Rank to = 0; to < 3; ++to)
    for (Rank by = 0; by < 3; ++by) {
      ASSERT_EQ(got[to][by].size(), kElements);
      for (std::uint64_t i = 0; i < kElements; ++i) EXPECT_EQ(got[to][by][i], by * 1000 + i);
    }
}

TEST_P(Aggregators, TakeManyElementsAsFarAsThereIsRoom) {
  start_words(2, {.name = "words", .elements = 7, .batches = 2});
  std::vector<std::uint64_t> words(100);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = i;
  for (const Rank to : {1U, 0U}) {
    std::span<const std::uint64_t> left(words);
    EXPECT_TRUE(cluster->until([&] {
      left = left.subspan(all[0]->push_many(to, left));
      return left.empty();
    }));
    EXPECT_EQ(flush(0), Status::ok);
    EXPECT_EQ(got[to][0], words);
  }
}

TEST_P(Aggregators, AFlushSendsWhatIsInTheBuffers) {
  start_words(2, {.name = "words", .elements = 1000});
  push(0, 1, 7);
  EXPECT_EQ(flush(0), Status::ok);
  EXPECT_EQ(got[1][0], std::vector<std::uint64_t>{7});
  EXPECT_EQ(flush(0), Status::ok);  // nothing to do
}

TEST_P(Aggregators, WhatAHandlerDoesNotTakeComesAgain) {
  start(2);
  std::vector<std::uint64_t> taken;
  int calls = 0;
  const Aggregator<std::uint64_t>::BatchHandler one_in_two =
      [&](Rank, std::span<const std::uint64_t> words) -> Handled {
    if (++calls % 2 == 0) return {};
    taken.push_back(words.front());
    return {.taken = 1, .refused = 1};
  };
  const AggregatorOptions options{.name = "slow", .elements = 5};
  Aggregator<std::uint64_t> origin((*cluster)[0], options, one_in_two);
  Aggregator<std::uint64_t> target((*cluster)[1], options, one_in_two);
  for (const Rank to : {1U, 0U}) {
    taken.clear();
    for (std::uint64_t i = 0; i < 12; ++i)
      EXPECT_TRUE(cluster->until([&] { return origin.push(to, i); }));
    EXPECT_EQ(cluster->end_of(origin.begin_flush()), Status::ok);
    ASSERT_EQ(taken.size(), 12U);
    for (std::uint64_t i = 0; i < 12; ++i) EXPECT_EQ(taken[i], i);
  }
  EXPECT_EQ(origin.refused(), 24U);
}

/// The elements that the handler had then count as refused, and those behind them come.
TEST_P(Aggregators, WhatAHandlerThrowsReachesTheCallerOnce) {
  start(2);
  std::vector<std::uint64_t> taken;
  bool throws = false;
  const Aggregator<std::uint64_t>::BatchHandler take =
      [&](Rank, std::span<const std::uint64_t> words) -> Handled {
    if (std::exchange(throws, false)) throw std::runtime_error("no use");
    taken.insert(taken.end(), words.begin(), words.end());
    return {.taken = words.size()};
  };
  const AggregatorOptions options{.name = "throws", .elements = 4};
  Aggregator<std::uint64_t> origin((*cluster)[0], options, take);
  Aggregator<std::uint64_t> target((*cluster)[1], options, take);
  std::uint64_t refused = 0;
  for (const Rank to : {1U, 0U}) {
    taken.clear();
    throws = true;
    int thrown = 0;
    const auto catching = [&](const std::function<bool()>& condition) {
      for (int tries = 0; tries < 3; ++tries) try {
          return cluster->until(condition);
        } catch (const std::runtime_error&) {
          ++thrown;
        }
      return false;
    };
    for (std::uint64_t i = 0; i < 6; ++i) EXPECT_TRUE(catching([&] { return origin.push(to, i); }));
    auto flush = origin.begin_flush();
    EXPECT_TRUE(catching([&] { return flush.finished(); }));
    EXPECT_EQ(flush.status(), Status::ok);
    EXPECT_EQ(thrown, 1);
    const std::uint64_t lost = origin.refused() - std::exchange(refused, origin.refused());
    EXPECT_TRUE(lost == 4 || lost == 6) << lost;
    EXPECT_EQ(taken, lost == 4 ? (std::vector<std::uint64_t>{4, 5}) : std::vector<std::uint64_t>{});
  }
}

TEST_P(Aggregators, ALateTargetTakesWhatWasPushedBefore) {
  start(2);
  std::uint64_t sum = 0;
  const AggregatorOptions options{.name = "late", .elements = 4};
  const std::function<void(Rank, const std::uint64_t&)> add = [&](Rank, const std::uint64_t& word) {
    sum += word;
  };
  Aggregator<std::uint64_t> early((*cluster)[0], options, add);
  for (const std::uint64_t word : {1U, 2U, 3U}) EXPECT_TRUE(early.push(1, word));
  auto flush = early.begin_flush();
  cluster->pass(100);
  EXPECT_FALSE(flush.finished());
  Aggregator<std::uint64_t> late((*cluster)[1], options, add);
  EXPECT_EQ(cluster->end_of(flush), Status::ok);
  EXPECT_EQ(sum, 6U);
}

TEST_P(Aggregators, RefuseOptionsThatCannotBe) {
  start(1);
  const std::function<void(Rank, const std::uint64_t&)> none = [](Rank, const std::uint64_t&) {};
  EXPECT_THROW(Words((*cluster)[0], {.name = ""}, none), Error);
  EXPECT_THROW(Words((*cluster)[0], {.name = "a", .elements = 0}, none), Error);
  EXPECT_THROW(Words((*cluster)[0], {.name = "a", .elements = kMaxBatchElements + 1}, none), Error);
  EXPECT_THROW(Words((*cluster)[0], {.name = "a", .batches = 0}, none), Error);
}

/// Where acknowledgements come without a poll, as on shm, there is always room.
TEST(AggregatorsOnShm, PollThoughThereIsRoomAllTheTime) {
  test::RealContainers cluster(test::backend_of("Shm"), 2);
  std::uint64_t taken = 0;
  const AggregatorOptions options{.name = "words", .elements = 4, .batches = 4};
  const auto take = [&](Rank, const std::uint64_t&) { ++taken; };
  Aggregator<std::uint64_t> here(cluster[0], options, take), there(cluster[1], options, take);
  EXPECT_TRUE(cluster.until([&] { return here.push(1, 0) && taken > 0; }));
  struct Polls final : remote::Part {
    std::size_t poll_part() override { return ++count, 0; }
    void members_changed() override {}
    std::uint32_t count = 0;
  } polls;
  cluster[0].progress().add(polls);
  for (std::uint64_t i = 0; i < 4'000; ++i) {
    ASSERT_TRUE(here.push(1, i));
    if (i % 4 == 3) cluster[1].poll();
  }
  cluster[0].progress().remove(polls);
  EXPECT_GT(polls.count, 0U);
}

struct MapBuffers : test::OnContainers {
  using Map = test::CountMap;
  using Buffer = MapBuffer<std::uint64_t, std::uint32_t>;
};
DUNLIN_RUN_ON(test::map_cases(), MapBuffers);

TEST_P(MapBuffers, CountWhatAllMembersAddAndSayWhatHadNoRoom) {
  start(2);
  auto maps = make<Map>(MapOptions{.name = "counts", .slots = 40});
  std::vector<std::unique_ptr<Buffer>> buffers;
  const MapBufferOptions options{
      .name = "counts", .call = MapCall::add, .promise = Promise::local, .elements = 8};
  for (const auto& map : maps) buffers.push_back(std::make_unique<Buffer>(*map, options));
  for (std::uint32_t round = 1; round <= 3; ++round)
    for (std::uint64_t key = 0; key < 50; ++key)
      for (const auto& buffer : buffers)
        EXPECT_TRUE(cluster->until([&] { return buffer->try_add(key, round); }));
  for (const auto& buffer : buffers) EXPECT_EQ(cluster->end_of(buffer->begin_flush()), Status::ok);
  std::map<std::uint64_t, std::uint64_t> all;
  for (const auto& map : maps)
    map->for_each_local([&](std::uint64_t key, std::uint64_t value) { all[key] += value; });
  EXPECT_EQ(all.size(), 50U);
  for (const auto& [key, value] : all) EXPECT_EQ(value, 12U) << key;
  for (std::uint64_t key = 100; key < 200; ++key)
    EXPECT_TRUE(cluster->until([&] { return buffers[0]->try_add(key, 1); }));
  EXPECT_EQ(cluster->end_of(buffers[0]->begin_flush()), Status::ok);
  EXPECT_EQ(buffers[0]->refused(), 70U);  // 80 slots, and 150 keys
}

TEST_P(MapBuffers, AnAddIsOneStepWhicheverWayItGoes) {
  start(3);
  auto maps = make<Map>(MapOptions{.name = "sums", .slots = 20});
  std::vector<Map::Operation> all;
  std::uint32_t expected = 0;
  for (std::uint32_t i = 1; i <= 30; ++i) {
    all.push_back(maps[i % 3]->add(7, i));
    expected += i;
  }
  for (auto& op : all) EXPECT_EQ(cluster->end_of(op), Status::ok);
  auto found = maps[0]->find(7);
  EXPECT_EQ(cluster->end_of(found), Status::ok);
  EXPECT_EQ(found.result().value(), expected);
}

TEST_P(MapBuffers, AnAddSaysTheSum) {
  start(2);
  auto maps = make<Map>(MapOptions{.name = "sums", .slots = 20});
  for (std::uint32_t key = 1; key <= 8; ++key) {
    auto op = maps[0]->add(key, 10);
    EXPECT_EQ(cluster->end_of(op), Status::ok);
    EXPECT_FALSE(op.result().found());
    EXPECT_EQ(op.result().value(), 10U);
    auto again = maps[1]->add(key, key);
    EXPECT_EQ(cluster->end_of(again), Status::ok);
    EXPECT_TRUE(again.result().found());
    EXPECT_EQ(again.result().value(), 10 + key);
  }
}

}  // namespace
}  // namespace dunlin

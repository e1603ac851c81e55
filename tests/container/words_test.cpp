#include <cstdint>
#include <vector>

#include "container/clusters.hpp"

namespace dunlin {
namespace {

using remote::Status;

struct WordContainers : test::OnContainers {};
DUNLIN_RUN_ON(test::container_cases({Style::one_sided}), WordContainers);

TEST_P(WordContainers, AnArrayIsOneForAllMembers) {
  start(3);
  auto arrays = make<Array<std::uint64_t>>(ArrayOptions{.name = "array", .size = 100});
  auto op = arrays[0]->operation();
  for (std::uint64_t i = 0; i < 100; ++i) {
    op.put(i, i * i);
    EXPECT_EQ(cluster->end_of(op), Status::ok);
  }
  auto add = arrays[1]->operation();
  add.add(99, 5);
  EXPECT_EQ(cluster->end_of(add), Status::ok);
  EXPECT_EQ(add.before(), 99U * 99);
  auto get = arrays[2]->operation();
  for (std::uint64_t i = 0; i < 100; ++i) {
    get.get(i);
    EXPECT_EQ(cluster->end_of(get), Status::ok);
    EXPECT_EQ(get.value(), i * i + (i == 99 ? 5 : 0));
  }
}

TEST_P(WordContainers, CountersCountWhatAllAdd) {
  start(3);
  for (const bool sharded : {false, true}) {
    auto counters = make<Counter>(
        CounterOptions{.name = sharded ? "sharded" : "single", .sharded = sharded, .host = 2});
    std::vector<std::unique_ptr<Counter::Operation>> all;
    for (std::uint64_t i = 1; i <= 30; ++i) {
      all.push_back(std::make_unique<Counter::Operation>(*counters[i % 3]));
      all.back()->add(i);
    }
    for (auto& op : all) EXPECT_EQ(cluster->end_of(*op), Status::ok);
    for (const auto& counter : counters) {
      auto op = counter->operation();
      op.read();
      EXPECT_EQ(cluster->end_of(op), Status::ok);
      EXPECT_EQ(op.value(), 30U * 31 / 2);
    }
  }
}

TEST_P(WordContainers, ABloomFilterForgetsNothing) {
  start(2);
  auto filters = make<BloomFilter<std::uint64_t>>(BloomFilterOptions{.name = "bloom", .words = 64});
  auto op = filters[0]->operation();
  std::uint32_t taken_for_present = 0;
  for (std::uint64_t key = 0; key < 200; ++key) {
    op.insert(key);
    EXPECT_EQ(cluster->end_of(op), Status::ok);
    if (op.found()) ++taken_for_present;
  }
  EXPECT_LT(taken_for_present, 20U);
  auto look = filters[1]->operation();
  taken_for_present = 0;
  for (std::uint64_t key = 0; key < 400; ++key) {
    look.contains(key);
    EXPECT_EQ(cluster->end_of(look), Status::ok);
    EXPECT_TRUE(look.found() || key >= 200) << key;
    if (key >= 200 && look.found()) ++taken_for_present;
  }
  EXPECT_LT(taken_for_present, 20U);
  op.insert(7);
  cluster->end_of(op);
  EXPECT_TRUE(op.found());
}

}  // namespace
}  // namespace dunlin

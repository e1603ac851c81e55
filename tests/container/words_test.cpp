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
  for (std::uint64_t i = 0; i < 100; ++i)
    EXPECT_EQ(cluster->end_of(arrays[0]->put(i, i * i)), Status::ok);
  auto add = arrays[1]->add(99, 5);
  EXPECT_EQ(cluster->end_of(add), Status::ok);
  EXPECT_EQ(add.result().before(), 99U * 99);
  for (std::uint64_t i = 0; i < 100; ++i) {
    auto get = arrays[2]->get(i);
    EXPECT_EQ(cluster->end_of(get), Status::ok);
    EXPECT_EQ(get.result().value(), i * i + (i == 99 ? 5 : 0));
  }
}

TEST_P(WordContainers, CountersCountWhatAllAdd) {
  start(3);
  for (const bool sharded : {false, true}) {
    auto counters = make<Counter>(
        CounterOptions{.name = sharded ? "sharded" : "single", .sharded = sharded, .host = 2});
    std::vector<remote::Call<container::Added>> all;
    for (std::uint64_t i = 1; i <= 30; ++i) all.push_back(counters[i % 3]->add(i));
    for (auto& call : all) EXPECT_EQ(cluster->end_of(call), Status::ok);
    for (const auto& counter : counters) {
      auto call = counter->read();
      EXPECT_EQ(cluster->end_of(call), Status::ok);
      EXPECT_EQ(call.result().value(), 30U * 31 / 2);
    }
  }
}

TEST_P(WordContainers, ABloomFilterForgetsNothing) {
  start(2);
  auto filters = make<BloomFilter<std::uint64_t>>(BloomFilterOptions{.name = "bloom", .words = 64});
  const auto insert = [&](std::uint64_t key) {
    auto call = filters[0]->insert(key);
    EXPECT_EQ(cluster->end_of(call), Status::ok);
    return call.result().found();
  };
  std::uint32_t taken_for_present = 0;
  for (std::uint64_t key = 0; key < 200; ++key) taken_for_present += insert(key) ? 1 : 0;
  EXPECT_LT(taken_for_present, 20U);
  taken_for_present = 0;
  for (std::uint64_t key = 0; key < 400; ++key) {
    auto look = filters[1]->contains(key);
    EXPECT_EQ(cluster->end_of(look), Status::ok);
    EXPECT_TRUE(look.result().found() || key >= 200) << key;
    if (key >= 200 && look.result().found()) ++taken_for_present;
  }
  EXPECT_LT(taken_for_present, 20U);
  EXPECT_TRUE(insert(7));
}

TEST_P(WordContainers, ABloomFilterKnowsOfItsOwnPartWhatItMistakes) {
  start(2);
  constexpr std::uint64_t kInserted = 4000;
  auto filters =
      make<BloomFilter<std::uint64_t>>(BloomFilterOptions{.name = "bloom", .words = 512});
  EXPECT_EQ(filters[0]->mistaken_share(), 0);
  const auto is_own = [&](std::uint64_t key) { return filters[0]->home_of(key) == 0; };
  for (std::uint64_t key = 0; key < kInserted; ++key)
    if (is_own(key)) filters[0]->insert_local(key);
  double own = 0, mistaken = 0;
  for (std::uint64_t key = 0; key < 20 * kInserted; ++key) {
    if (!is_own(key)) continue;
    filters[0]->prefetch_local(key);
    const bool found = filters[0]->contains_local(key);
    EXPECT_TRUE(found || key >= kInserted) << key;
    own += key >= kInserted ? 1 : 0;
    mistaken += key >= kInserted && found ? 1 : 0;
  }
  EXPECT_GT(mistaken, 0);
  EXPECT_NEAR(filters[0]->mistaken_share(), mistaken / own, 0.2 * mistaken / own);
}

}  // namespace
}  // namespace dunlin

#include "bench/harness/bare.hpp"

#include <vector>

#include <gtest/gtest.h>

#include <dunlin/error.hpp>

namespace dunlin::bench {
namespace {

constexpr Batches kTiny{.batches = 3, .per_batch = 5};

/// Runs the bare operation twice in a team of two, as alternating rounds would.
template <class Operation>
std::vector<double> twice(Operation operation) {
  Team team({.processes = 2});
  team.run([&](Member& me) { alternate(me, 2, {[&] { return operation(me); }}); });
  return {team.series(0).begin(), team.series(0).end()};
}

void expect_two_positive(const std::vector<double>& series) {
  ASSERT_EQ(series.size(), 2U);
  EXPECT_GT(series[0], 0);
  EXPECT_GT(series[1], 0);
}

TEST(Bare, PingPongCanBeRepeatedWithAnySpinAndPayload) {
  expect_two_positive(
      twice([](Member& me) { return bare::ping_pong(me, kTiny, bare::Spin::pause); }));
  expect_two_positive(
      twice([](Member& me) { return bare::ping_pong(me, kTiny, bare::Spin::tight, 4096); }));
}

TEST(Bare, PingPongTakesTheLongestPayloadAndRefusesWhatWouldLieOnTheOthersFlag) {
  expect_two_positive(
      twice([](Member& me) { return bare::ping_pong(me, kTiny, bare::Spin::tight, 65'536); }));
  EXPECT_THROW(twice([](Member& me) {
                 return bare::ping_pong(me, kTiny, bare::Spin::tight, std::size_t{1} << 17);
               }),
               Error);
}

TEST(Bare, CountingKeepsBothInStep) {
  expect_two_positive(
      twice([](Member& me) { return bare::count_in_step(me, kTiny, bare::Spin::pause); }));
}

TEST(Bare, FutexWakesTheSleeper) {
  expect_two_positive(twice([](Member& me) { return bare::wake_by_futex(me, 3); }));
}

TEST(Bare, ScansYieldATime) {
  std::vector<std::byte> memory(64 * 100);
  EXPECT_GT(bare::scan_words(kTiny, memory, 100), 0);
  EXPECT_GT(bare::scan_bytes(kTiny, memory, memory.size()), 0);
  EXPECT_GT(bare::fan_out(kTiny, memory, 8, 1), 0);
  EXPECT_GT(bare::test_and_count({.batches = 3, .per_batch = 1000}, memory), 0);
}

}  // namespace
}  // namespace dunlin::bench

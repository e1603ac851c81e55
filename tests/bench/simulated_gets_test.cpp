#include "bench/store/simulated_gets.hpp"

#include <array>

#include <gtest/gtest.h>

namespace dunlin::bench {
namespace {

constexpr std::array<std::uint32_t, 1> kOne{1};
constexpr std::array<std::uint32_t, 1> kMany{8};
constexpr std::uint32_t kPairs = 200;

SimulatedGets gets_of(std::uint32_t clients, std::size_t cache_bytes) {
  return {.network = drtm_network(),
          .clients = clients,
          .pairs = kPairs,
          .cache_bytes = cache_bytes,
          .warm_up = kPairs};
}

// The raw figures that were published: 3 us for a read, and 26 million of them a second.
TEST(SimulatedGets, RunOnANetworkWithThePublishedRawFigures) {
  EXPECT_NEAR(simulate_bare_reads(drtm_network(), 1, kOne, 1).front().latency_ns, 3'000, 60);
  EXPECT_NEAR(simulate_bare_reads(drtm_network(), 20, kMany, 1).front().per_second, 26e6, 0.5e6);
}

TEST(SimulatedGets, WithACachedLocationReachTheRateOfBareReads) {
  const GetFigures gets = simulate_gets(gets_of(20, 1 << 16), kMany, 1).front();
  EXPECT_NEAR(gets.per_second, 26e6, 0.05 * 26e6);
  EXPECT_LT(gets.bucket_reads, 0.05);
}

TEST(SimulatedGets, WithoutACacheReachHalfThatRate) {
  const GetFigures gets = simulate_gets(gets_of(20, 0), kMany, 1).front();
  EXPECT_NEAR(gets.bucket_reads, 1.05, 0.05);
  EXPECT_NEAR(gets.per_second, 26e6 / (1 + gets.bucket_reads), 0.05 * 26e6);
}

TEST(SimulatedGets, TakeAReadForEachBucketAndTheEntry) {
  const double cached = simulate_gets(gets_of(1, 1 << 16), kOne, 1).front().latency_ns;
  const double not_cached = simulate_gets(gets_of(1, 0), kOne, 1).front().latency_ns;
  EXPECT_NEAR(cached, 3'400, 100);
  EXPECT_NEAR(not_cached - cached, 3'000, 200);
}

}  // namespace
}  // namespace dunlin::bench

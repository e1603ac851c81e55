#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "support/cluster.hpp"

/// Members that share a store, all polled by the test's own thread, on whatever fabric.
namespace dunlin::test {

/// Small, so that chains overflow and memory ends soon.
inline StoreOptions small_store() {
  StoreOptions options;
  options.memory_bytes = 4 << 20;
  options.large_bytes = 0;
  options.expected_keys = 200;
  options.cache_bytes = 4096;
  return options;
}

using StoreCluster = Cluster<Store, StoreOptions>;
using SimStores = SimCluster<StoreCluster>;
using RealStores = RealCluster<StoreCluster>;
using StoreBackend = ClusterBackend<StoreCluster>;

inline std::vector<StoreBackend> store_backends() { return cluster_backends<StoreCluster>(); }

/// Calls of the members, which end well.
struct StoreCalls {
  Store& at(Rank rank) { return (*cluster)[rank]; }
  StoreOperation& ended(StoreOperation& operation) {
    EXPECT_EQ(remote::describe(cluster->end_of(operation)), "done");
    return operation;
  }
  StoreOperation& ended(StoreOperation&& operation) { return ended(operation); }
  /// The value; "-" if the key is absent.
  std::string get(Rank by, StoreKey key) {
    auto op = at(by).get(key);
    return ended(op).found() ? std::string(op.text()) : "-";
  }
  bool put(Rank by, StoreKey key, std::string_view value, std::uint64_t ttl_ns = kNoExpiry) {
    return ended(at(by).put(key, value, ttl_ns)).found();
  }
  bool erase(Rank by, StoreKey key) { return ended(at(by).erase(key)).changed(); }
  std::uint64_t count(Rank by) { return ended(at(by).count()).keys(); }
  /// Until no home has more keys than its index should have.
  void settle() {
    EXPECT_TRUE(cluster->until([&] {
      for (Rank rank = 0; rank < cluster->size(); ++rank)
        if (at(rank).statistics().occupancy() > 0.75) return false;
      return true;
    }));
  }
  /// Over all members.
  std::uint64_t sum_of(std::uint64_t StoreStatistics::*figure) {
    std::uint64_t sum = 0;
    for (Rank rank = 0; rank < cluster->size(); ++rank) sum += at(rank).statistics().*figure;
    return sum;
  }
  std::uint64_t sum_of(const std::string& counter) {
    std::uint64_t sum = 0;
    for (Rank rank = 0; rank < cluster->size(); ++rank) sum += at(rank).counters().at(counter);
    return sum;
  }
  static std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
  }
  std::unique_ptr<StoreCluster> cluster;
};

struct OnStores : testing::TestWithParam<StoreBackend>, StoreCalls {
  void SetUp() override { DUNLIN_SKIP_WITHOUT(GetParam()); }
  void start(std::uint32_t members, const StoreOptions& options = small_store()) {
    cluster = GetParam().start(members, options);
  }
};

}  // namespace dunlin::test

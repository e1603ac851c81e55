#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/store.hpp>

#include "support/fresh_group.hpp"
#include "support/node_backend.hpp"

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

class StoreCluster {
 public:
  virtual ~StoreCluster() = default;
  virtual bool until(const std::function<bool()>& condition) = 0;
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(stores_.size()); }
  Store& operator[](Rank rank) { return *stores_.at(rank); }

  /// Until the operation has ended; its status.
  remote::Status end_of(remote::InFlight& operation) {
    EXPECT_TRUE(until([&] { return operation.finished(); })) << "an operation hangs";
    return operation.status();
  }

 protected:
  std::vector<std::unique_ptr<Store>> stores_;
};

class SimStores final : public StoreCluster {
 public:
  SimStores(const sim::Profile& profile, std::uint32_t members, const StoreOptions& options,
            std::uint64_t seed = 1)
      : world(profile, members, seed) {
    for (Rank rank = 0; rank < members; ++rank) {
      stores_.push_back(std::make_unique<Store>(world.fabric(rank), options));
      world.attach(rank, [this, rank] { return stores_[rank]->poll(); });
    }
  }
  ~SimStores() override {
    for (Rank rank = 0; rank < size(); ++rank) world.detach_all(rank);
    stores_.clear();
  }
  bool until(const std::function<bool()>& condition) override {
    return world.run_until(condition, 10'000'000'000);
  }
  sim::World world;
};

class RealStores final : public StoreCluster {
 public:
  RealStores(const NodeBackend& backend, std::uint32_t members, const StoreOptions& options)
      : fabrics_(members) {
    const std::string group = fresh_group();
    {
      std::vector<std::jthread> threads;
      for (Rank rank = 0; rank < members; ++rank)
        threads.emplace_back([&, rank] {
          fabrics_[rank] = backend.join({.group = group, .nodes = members, .rank = rank});
        });
    }
    for (const auto& fabric : fabrics_)
      stores_.push_back(std::make_unique<Store>(*fabric, options));
  }
  ~RealStores() override { stores_.clear(); }
  bool until(const std::function<bool()>& condition) override {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (!condition()) {
      std::size_t done = 0;
      for (const auto& store : stores_) done += store->poll();
      if (done == 0) std::this_thread::yield();
      if (std::chrono::steady_clock::now() > end) return false;
    }
    return true;
  }

 private:
  std::vector<std::unique_ptr<Fabric>> fabrics_;
};

struct StoreBackend {
  std::string name;
  std::function<std::string()> why_not;
  std::function<std::unique_ptr<StoreCluster>(std::uint32_t members, const StoreOptions&)> start;
  friend void PrintTo(const StoreBackend& backend, std::ostream* out) { *out << backend.name; }
};

inline std::vector<StoreBackend> store_backends() {
  std::vector<StoreBackend> all;
  const auto add = [&](const std::string& name, const sim::Profile& profile) {
    all.push_back({name, [] { return std::string(); },
                   [profile](std::uint32_t members, const StoreOptions& options) {
                     return std::make_unique<SimStores>(profile, members, options);
                   }});
  };
  sim::Profile wild = sim::profile("ib100");  // shuffles what it may
  wild.jitter = 0.9;
  wild.ordered_placement = false;
  wild.native_atomics = false;
  sim::Profile narrow = sim::profile("ib100");  // has hardly any room
  narrow.queue_slots = 2;
  narrow.max_inline_bytes = 0;
  add("SimUsual", sim::profile("ib100"));
  add("SimWild", wild);
  add("SimNarrow", narrow);
  for (const NodeBackend& backend : backends()) {
    if (backend.name == "Hosts") continue;  // their nodes need threads of their own
    all.push_back({backend.name, backend.why_not,
                   [backend](std::uint32_t members, const StoreOptions& options) {
                     return std::make_unique<RealStores>(backend, members, options);
                   }});
  }
  return all;
}

inline std::string name_of_backend(const testing::TestParamInfo<StoreBackend>& one) {
  return one.param.name;
}

struct OnStores : testing::TestWithParam<StoreBackend> {
  void SetUp() override { DUNLIN_SKIP_WITHOUT(GetParam()); }
  void start(std::uint32_t members, const StoreOptions& options = small_store()) {
    cluster = GetParam().start(members, options);
  }
  Store& at(Rank rank) { return (*cluster)[rank]; }

  /// The operation, ended well.
  StoreOperation& ended(StoreOperation& operation) {
    EXPECT_EQ(remote::describe(cluster->end_of(operation)), "done");
    return operation;
  }
  /// The value; "-" if the key is absent.
  std::string get(Rank by, StoreKey key) {
    auto op = at(by).get(key);
    ended(op);
    return op.found() ? std::string(op.text()) : "-";
  }
  bool put(Rank by, StoreKey key, std::string_view value, std::uint64_t ttl_ns = kNoExpiry) {
    auto op = at(by).put(key, value, ttl_ns);
    return ended(op).found();
  }
  bool erase(Rank by, StoreKey key) {
    auto op = at(by).erase(key);
    return ended(op).changed();
  }
  std::uint64_t count(Rank by) {
    auto op = at(by).count();
    return ended(op).keys();
  }
  static std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
  }
  std::unique_ptr<StoreCluster> cluster;
};

}  // namespace dunlin::test

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/remote/progress.hpp>

#include "support/fresh_group.hpp"
#include "support/node_backend.hpp"

/// Members of one layer (its stores, say), all polled by the test's own thread, on any fabric.
namespace dunlin::test {

template <class MemberType, class OptionsType>
class Cluster {
 public:
  using Member = MemberType;
  using Options = OptionsType;

  virtual ~Cluster() = default;
  /// Polls until the condition holds; false after a time that working code never takes.
  virtual bool until(const std::function<bool()>& condition) = 0;
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(members_.size()); }
  Member& operator[](Rank rank) { return *members_.at(rank); }

  /// Polls until the call has ended; returns its status.
  template <class Result>
  remote::Status end_of(remote::BasicCall<Result>& call) {
    EXPECT_TRUE(until([&] { return call.finished(); })) << "a call hangs";
    return call.status();
  }
  template <class Result>
  remote::Status end_of(remote::BasicCall<Result>&& call) {
    return end_of(call);
  }
  /// Lets so many rounds, or events of the simulator, go by.
  void pass(auto rounds) {
    until([&] { return rounds-- == 0; });
  }

 protected:
  std::vector<std::unique_ptr<Member>> members_;
};

/// `Base` is a Cluster.
template <class Base>
class SimCluster final : public Base {
 public:
  SimCluster(const sim::Profile& profile, std::uint32_t members,
             const typename Base::Options& options = {}, std::uint64_t seed = 1)
      : world(profile, members, seed) {
    for (Rank rank = 0; rank < members; ++rank) {
      this->members_.push_back(
          std::make_unique<typename Base::Member>(world.fabric(rank), options));
      world.attach(rank, [this, rank] { return this->members_[rank]->poll(); });
    }
  }
  ~SimCluster() override {
    for (Rank rank = 0; rank < this->size(); ++rank) world.detach_all(rank);
    this->members_.clear();
  }
  bool until(const std::function<bool()>& condition) override {
    return world.run_until(condition, 10'000'000'000);
  }
  sim::World world;
};

template <class Base>
class RealCluster final : public Base {
 public:
  RealCluster(const NodeBackend& backend, std::uint32_t members,
              const typename Base::Options& options = {})
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
      this->members_.push_back(std::make_unique<typename Base::Member>(*fabric, options));
  }
  ~RealCluster() override { this->members_.clear(); }
  bool until(const std::function<bool()>& condition) override {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (!condition()) {
      std::size_t done = 0;
      for (const auto& member : this->members_) done += member->poll();
      if (done == 0) std::this_thread::yield();
      if (std::chrono::steady_clock::now() > end) return false;
    }
    return true;
  }

 private:
  std::vector<std::unique_ptr<Fabric>> fabrics_;
};

template <class Base>
struct ClusterBackend {
  std::string name;
  std::function<std::string()> why_not;
  std::function<std::unique_ptr<Base>(std::uint32_t members, const typename Base::Options&)> start;
  friend void PrintTo(const ClusterBackend& backend, std::ostream* out) { *out << backend.name; }
};

/// A network that shuffles what it may, and whose atomics are made by the target's processor.
inline sim::Profile wild_profile() {
  sim::Profile wild = sim::profile("ib100");
  wild.jitter = 0.9;
  wild.ordered_placement = false;
  wild.native_atomics = false;
  return wild;
}
/// A network that has hardly any room.
inline sim::Profile narrow_profile() {
  sim::Profile narrow = sim::profile("ib100");
  narrow.queue_slots = 2;
  narrow.max_inline_bytes = 0;
  return narrow;
}

/// Three simulated networks, and each backend whose nodes can be in one thread.
template <class Base>
std::vector<ClusterBackend<Base>> cluster_backends() {
  std::vector<ClusterBackend<Base>> all;
  const auto add = [&](const std::string& name, const sim::Profile& profile) {
    all.push_back({name, [] { return std::string(); },
                   [profile](std::uint32_t members, const typename Base::Options& options) {
                     return std::make_unique<SimCluster<Base>>(profile, members, options);
                   }});
  };
  add("SimUsual", sim::profile("ib100"));
  add("SimWild", wild_profile());
  add("SimNarrow", narrow_profile());
  for (const NodeBackend& backend : backends()) {
    if (backend.name == "Hosts") continue;  // nodes on hosts need threads of their own
    all.push_back({backend.name, backend.why_not,
                   [backend](std::uint32_t members, const typename Base::Options& options) {
                     return std::make_unique<RealCluster<Base>>(backend, members, options);
                   }});
  }
  return all;
}

}  // namespace dunlin::test

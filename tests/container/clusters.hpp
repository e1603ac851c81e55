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

#include <dunlin/container.hpp>
#include <dunlin/fabric/sim.hpp>

#include "support/fresh_group.hpp"
#include "support/node_backend.hpp"

/// Members that share containers, all polled by the test's own thread, on whatever fabric.
namespace dunlin::test {

class ContainerCluster {
 public:
  virtual ~ContainerCluster() = default;
  virtual bool until(const std::function<bool()>& condition) = 0;
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(members_.size()); }
  Containers& operator[](Rank rank) { return *members_.at(rank); }

  /// Until the operation has ended; its status.
  remote::Status end_of(remote::InFlight& operation) {
    EXPECT_TRUE(until([&] { return operation.finished(); })) << "an operation hangs";
    return operation.status();
  }

 protected:
  std::vector<std::unique_ptr<Containers>> members_;
};

class SimContainers final : public ContainerCluster {
 public:
  SimContainers(const sim::Profile& profile, std::uint32_t members, std::uint64_t seed = 1)
      : world(profile, members, seed) {
    for (Rank rank = 0; rank < members; ++rank) {
      members_.push_back(std::make_unique<Containers>(world.fabric(rank)));
      world.attach(rank, [this, rank] { return members_[rank]->poll(); });
    }
  }
  ~SimContainers() override { members_.clear(); }
  bool until(const std::function<bool()>& condition) override {
    return world.run_until(condition, 1'000'000'000);
  }
  sim::World world;
};

class RealContainers final : public ContainerCluster {
 public:
  RealContainers(const NodeBackend& backend, std::uint32_t members) : fabrics_(members) {
    const std::string group = fresh_group();
    {
      std::vector<std::jthread> threads;
      for (Rank rank = 0; rank < members; ++rank)
        threads.emplace_back([&, rank] {
          fabrics_[rank] = backend.join({.group = group, .nodes = members, .rank = rank});
        });
    }
    for (const auto& fabric : fabrics_) members_.push_back(std::make_unique<Containers>(*fabric));
  }
  ~RealContainers() override { members_.clear(); }
  bool until(const std::function<bool()>& condition) override {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (!condition()) {
      std::size_t done = 0;
      for (const auto& member : members_) done += member->poll();
      if (done == 0) std::this_thread::yield();
      if (std::chrono::steady_clock::now() > end) return false;
    }
    return true;
  }

 private:
  std::vector<std::unique_ptr<Fabric>> fabrics_;
};

struct ContainerBackend {
  std::string name;
  std::function<std::string()> why_not;
  std::function<std::unique_ptr<ContainerCluster>(std::uint32_t members)> start;
  friend void PrintTo(const ContainerBackend& backend, std::ostream* out) { *out << backend.name; }
};

/// A network that shuffles what it may, and whose atomics are made by the target's processor.
inline sim::Profile wild_profile() {
  sim::Profile wild = sim::profile("ib100");
  wild.jitter = 0.9;
  wild.ordered_placement = false;
  wild.native_atomics = false;
  return wild;
}
/// One that has hardly any room.
inline sim::Profile narrow_profile() {
  sim::Profile narrow = sim::profile("ib100");
  narrow.queue_slots = 2;
  narrow.max_inline_bytes = 0;
  return narrow;
}

inline std::vector<ContainerBackend> container_backends() {
  std::vector<ContainerBackend> all;
  const auto add = [&](const std::string& name, const sim::Profile& profile) {
    all.push_back({name, [] { return std::string(); },
                   [profile](std::uint32_t members) {
                     return std::make_unique<SimContainers>(profile, members);
                   }});
  };
  add("SimUsual", sim::profile("ib100"));
  add("SimWild", wild_profile());
  add("SimNarrow", narrow_profile());
  for (const NodeBackend& backend : backends()) {
    if (backend.name == "Hosts") continue;  // their nodes need threads of their own
    all.push_back({backend.name, backend.why_not, [backend](std::uint32_t members) {
                     return std::make_unique<RealContainers>(backend, members);
                   }});
  }
  return all;
}

/// Each fabric, with each style.
struct ContainerCase {
  ContainerBackend backend;
  Style style;
  friend void PrintTo(const ContainerCase& one, std::ostream* out) {
    *out << one.backend.name << " " << name_of(one.style);
  }
};

inline std::vector<ContainerCase> container_cases() {
  std::vector<ContainerCase> all;
  for (const ContainerBackend& backend : container_backends())
    for (const Style style : {Style::one_sided, Style::message, Style::automatic})
      all.push_back({backend, style});
  return all;
}

inline std::string name_of_case(const testing::TestParamInfo<ContainerCase>& info) {
  static const std::vector<std::string> styles{"Automatic", "OneSided", "Message"};
  return info.param.backend.name + styles.at(static_cast<std::size_t>(info.param.style));
}

struct OnContainers : testing::TestWithParam<ContainerCase> {
  void SetUp() override { DUNLIN_SKIP_WITHOUT(GetParam().backend); }
  void start(std::uint32_t members) { cluster = GetParam().backend.start(members); }
  /// A container at each member.
  template <class Made, class Options>
  std::vector<std::unique_ptr<Made>> make(Options options) {
    std::vector<std::unique_ptr<Made>> all;
    if constexpr (requires { options.style; }) options.style = GetParam().style;
    for (Rank rank = 0; rank < cluster->size(); ++rank)
      all.push_back(std::make_unique<Made>((*cluster)[rank], options));
    return all;
  }
  /// Runs a call to its end, and gives what `what` makes of it. A call cannot be moved to where it
  /// is kept.
  template <class Begin, class What>
  auto end(const Begin& begin, const What& what) {
    auto&& operation = begin();
    cluster->end_of(operation);
    return what(operation);
  }
  std::unique_ptr<ContainerCluster> cluster;
};

}  // namespace dunlin::test

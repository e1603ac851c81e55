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
#include <dunlin/segment.hpp>

#include "support/fresh_group.hpp"
#include "support/node_backend.hpp"

/// Members of one space, all polled by the test's own thread, on whatever fabric.
namespace dunlin::test {

/// An operation that outlives the call: it cannot be moved to where it is kept.
template <class Call>
std::unique_ptr<SegmentOperation> begin(const Call& call) {
  return std::unique_ptr<SegmentOperation>(new SegmentOperation(call()));
}

class Spaces {
 public:
  virtual ~Spaces() = default;
  virtual bool until(const std::function<bool()>& condition) = 0;
  SegmentSpace& operator[](Rank rank) { return *spaces_.at(rank); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(spaces_.size()); }

  /// How the operation ends.
  Outcome end_of(SegmentOperation& operation) {
    EXPECT_TRUE(until([&] { return operation.finished(); })) << operation.describe();
    return operation.result();
  }
  Outcome end_of(SegmentOperation&& operation) { return end_of(operation); }
  Key make(Rank at, const SegmentSpec& spec) {
    const Outcome made = end_of(spaces_.at(at)->allocate(spec));
    EXPECT_EQ(remote::describe(made.status), "done");
    return made.key;
  }
  remote::Status put(Rank by, Key key, std::uint64_t value) {
    return end_of(spaces_.at(by)->put(key, bytes_of(value))).status;
  }
  /// The value of one word; the test fails if there is none.
  std::uint64_t get(Rank by, Key key) {
    std::uint64_t value = UINT64_MAX;
    EXPECT_EQ(remote::describe(end_of(spaces_.at(by)->get(key, bytes_of(value))).status), "done");
    return value;
  }
  void drop(Rank rank) { spaces_.at(rank).reset(); }

 protected:
  std::vector<std::unique_ptr<SegmentSpace>> spaces_;
};

struct SpaceBackend {
  std::string name;
  std::function<std::string()> why_not;
  std::function<std::unique_ptr<Spaces>(std::uint32_t members, SpaceOptions options)> start;
  friend void PrintTo(const SpaceBackend& backend, std::ostream* out) { *out << backend.name; }
};

class SimSpaces final : public Spaces {
 public:
  SimSpaces(const sim::Profile& profile, std::uint32_t members, const SpaceOptions& options,
            std::uint64_t seed = 1)
      : world(profile, members, seed) {
    for (Rank rank = 0; rank < members; ++rank) {
      spaces_.push_back(std::make_unique<SegmentSpace>(world.fabric(rank), options));
      world.attach(rank, [this, rank] { return spaces_[rank] ? spaces_[rank]->poll() : 0; });
    }
  }
  ~SimSpaces() override { spaces_.clear(); }
  bool until(const std::function<bool()>& condition) override {
    return world.run_until(condition, 1'000'000'000);
  }
  sim::World world;
};

class RealSpaces final : public Spaces {
 public:
  RealSpaces(const NodeBackend& backend, std::uint32_t members, const SpaceOptions& options)
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
      spaces_.push_back(std::make_unique<SegmentSpace>(*fabric, options));
  }
  ~RealSpaces() override { spaces_.clear(); }
  bool until(const std::function<bool()>& condition) override {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (!condition()) {
      std::size_t done = 0;
      for (const auto& space : spaces_) done += space ? space->poll() : 0;
      if (done == 0) std::this_thread::yield();
      if (std::chrono::steady_clock::now() > end) return false;
    }
    return true;
  }

 private:
  std::vector<std::unique_ptr<Fabric>> fabrics_;
};

/// Networks that shuffle what they may, or have hardly any room; shared memory; TCP.
inline std::vector<SpaceBackend> space_backends() {
  sim::Profile wild = sim::profile("ib100");
  wild.jitter = 0.9;
  wild.ordered_placement = false;
  wild.native_atomics = false;
  sim::Profile narrow = sim::profile("ib100");
  narrow.queue_slots = 2;
  narrow.max_inline_bytes = 0;
  std::vector<SpaceBackend> all;
  const auto add = [&](const std::string& name, const sim::Profile& profile) {
    all.push_back({name, [] { return std::string(); },
                   [profile](std::uint32_t members, const SpaceOptions& options) {
                     return std::make_unique<SimSpaces>(profile, members, options);
                   }});
  };
  add("SimUsual", sim::profile("ib100"));
  add("SimWild", wild);
  add("SimNarrow", narrow);
  for (const NodeBackend& backend : backends()) {
    if (backend.name == "Hosts") continue;  // their nodes need threads of their own
    all.push_back({backend.name, backend.why_not,
                   [backend](std::uint32_t members, const SpaceOptions& options) {
                     return std::make_unique<RealSpaces>(backend, members, options);
                   }});
  }
  return all;
}

struct OnSpaces : testing::TestWithParam<SpaceBackend> {
  void start(std::uint32_t members, const SpaceOptions& options = {}) {
    spaces = GetParam().start(members, options);
  }
  void SetUp() override { DUNLIN_SKIP_WITHOUT(GetParam()); }
  SegmentSpace& at(Rank rank) { return (*spaces)[rank]; }
  std::unique_ptr<Spaces> spaces;
};

inline std::string name_of_backend(const testing::TestParamInfo<SpaceBackend>& info) {
  return info.param.name;
}

}  // namespace dunlin::test

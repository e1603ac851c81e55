#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/run.hpp>
#include <dunlin/segment.hpp>

#include "support/cluster.hpp"
#include "support/group_member.hpp"
#include "support/process.hpp"

/// Members of one space, all polled by the test's own thread, on whatever fabric.
namespace dunlin::test {

inline constexpr std::uint64_t kPatienceNs = std::uint64_t{kPatienceMs} * 1'000'000;

/// An operation that outlives the call: it cannot be moved to where it is kept.
template <class Call>
std::unique_ptr<SegmentOperation> begin(const Call& call) {
  return std::unique_ptr<SegmentOperation>(new SegmentOperation(call()));
}

class Spaces : public Cluster<SegmentSpace, SpaceOptions> {
 public:
  /// How the operation ends.
  Outcome end_of(SegmentOperation& operation) {
    EXPECT_TRUE(until([&] { return operation.finished(); })) << operation.describe();
    return operation.result();
  }
  Outcome end_of(SegmentOperation&& operation) { return end_of(operation); }
  Key make(Rank at, const SegmentSpec& spec) {
    const Outcome made = end_of(members_.at(at)->allocate(spec));
    EXPECT_EQ(remote::describe(made.status), "done");
    return made.key;
  }
  remote::Status put(Rank by, Key key, std::uint64_t value) {
    return end_of(members_.at(by)->put(key, bytes_of(value))).status;
  }
  /// The value of one word; the test fails if there is none.
  std::uint64_t get(Rank by, Key key) {
    std::uint64_t value = UINT64_MAX;
    EXPECT_EQ(remote::describe(end_of(members_.at(by)->get(key, bytes_of(value))).status), "done");
    return value;
  }
};

using SpaceBackend = ClusterBackend<Spaces>;

/// A member of three processes that share spaces.
struct SpaceMember {
  SpaceMember(const NodeBackend& backend, const std::string& group_name, Rank rank)
      : fabric(backend.join({.group = group_name, .nodes = 3, .rank = rank})) {}

  std::unique_ptr<Fabric> fabric;
  GroupMember member{*fabric};
  SegmentSpace space{member.progress, {.pool_bytes = 1 << 16}};
};

struct OnSpacesOfProcesses : OnBackends {
  using Body = std::function<int(SpaceMember&, Parent&)>;
  [[nodiscard]] Process start(Rank rank, const Body& body) const {
    return Process([=, this](Parent& parent) {
      SpaceMember member(GetParam(), name, rank);
      return body(member, parent);
    });
  }
  /// Serves the others until the parent kills this process.
  [[nodiscard]] Process start_serving(Rank rank) const {
    return start(rank, [](SpaceMember& member, Parent&) {
      run(member.space);
      return 0;
    });
  }
  std::string name = fresh_group();
};

struct OnSpaces : testing::TestWithParam<SpaceBackend> {
  void start(std::uint32_t members, const SpaceOptions& options = {}) {
    spaces = GetParam().start(members, options);
  }
  void SetUp() override { DUNLIN_SKIP_WITHOUT(GetParam()); }
  SegmentSpace& at(Rank rank) { return (*spaces)[rank]; }
  std::unique_ptr<Spaces> spaces;
};

}  // namespace dunlin::test

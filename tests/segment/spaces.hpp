#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/segment.hpp>

#include "support/cluster.hpp"

/// Members of one space, all polled by the test's own thread, on whatever fabric.
namespace dunlin::test {

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

inline std::vector<SpaceBackend> space_backends() { return cluster_backends<Spaces>(); }

struct OnSpaces : testing::TestWithParam<SpaceBackend> {
  void start(std::uint32_t members, const SpaceOptions& options = {}) {
    spaces = GetParam().start(members, options);
  }
  void SetUp() override { DUNLIN_SKIP_WITHOUT(GetParam()); }
  SegmentSpace& at(Rank rank) { return (*spaces)[rank]; }
  std::unique_ptr<Spaces> spaces;
};

}  // namespace dunlin::test

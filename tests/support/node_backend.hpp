#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/rendezvous.hpp>

#include "support/fresh_group.hpp"

/// Where the real nodes of a test are: in this host's shared memory, on a network of this host's
/// own, on several hosts, or on an RDMA device. One test, on every backend.
namespace dunlin::test {

struct NodeSpec {
  std::string group;
  std::uint32_t nodes;
  Rank rank;
  /// A node of a test polls when it likes, on a busy machine; so 0, unless silence is the subject.
  std::uint32_t silence_timeout_ms = 0;
};

struct NodeBackend {
  std::string name;
  /// Why it cannot be used here, or nothing; to be asked before threads or processes start.
  std::function<std::string()> why_not;
  /// Joins; the calling thread belongs to the node from then on.
  std::function<std::unique_ptr<Fabric>(const NodeSpec&)> join;
  /// The rendezvous where the node is found, and finds the others of its group of `nodes`.
  std::function<std::shared_ptr<Rendezvous>(const NodeSpec&)> rendezvous;
  /// How long a node that works may be silent, where silence is the subject: the emulated machine's
  /// processors stand still whenever this machine's have other work.
  std::uint32_t silence_ms = 2'000;

  friend void PrintTo(const NodeBackend& backend, std::ostream* out) { *out << backend.name; }
};

[[nodiscard]] const std::vector<NodeBackend>& backends();
/// The one of this name.
[[nodiscard]] const NodeBackend& backend_of(const std::string& name);
/// Those of these names.
[[nodiscard]] std::vector<NodeBackend> backends_of(const std::vector<std::string>& names);

/// How long a test waits before it calls something hung.
inline constexpr std::uint32_t kPatienceMs = 120'000;

/// The first line of a test's SetUp().
#define DUNLIN_SKIP_WITHOUT(backend) \
  if (const std::string why = (backend).why_not(); !why.empty()) GTEST_SKIP() << why

/// A suite whose tests run on each backend of a table:
///
///     struct Joins : test::OnBackends {};
///     DUNLIN_RUN_ON(test::backends(), Joins);
struct OnBackends : testing::TestWithParam<NodeBackend> {
  void SetUp() override { DUNLIN_SKIP_WITHOUT(GetParam()); }
};

/// Such a suite about a group of real processes, each of which makes its own fabric.
struct OnProcesses : OnBackends {
  [[nodiscard]] std::unique_ptr<Fabric> join(Rank rank) const {
    return GetParam().join({name, members, rank, silence_timeout_ms});
  }
  /// For the founders, and one that comes later, whose rank is `members`.
  [[nodiscard]] std::shared_ptr<Rendezvous> rendezvous(Rank rank) const {
    return GetParam().rendezvous({name, members + 1, rank, silence_timeout_ms});
  }
  std::string name = fresh_group();
  std::uint32_t members = 3;
  std::uint32_t silence_timeout_ms = 0;
};

}  // namespace dunlin::test

#define DUNLIN_RUN_ON(table, Suite)                             \
  INSTANTIATE_TEST_SUITE_P(On, Suite, testing::ValuesIn(table), \
                           [](const auto& one) { return one.param.name; })

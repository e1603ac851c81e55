#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/meeting_place.hpp>

/// Where the real nodes of a test are: in this host's shared memory, on a network of this host's
/// own, on several hosts, or on an RDMA device. One test, on every ground.
namespace dunlin::test {

struct Seat {
  std::string group;
  std::uint32_t nodes;
  Rank rank;
  /// A node of a test polls when it likes, on a busy machine; so 0, unless silence is the subject.
  std::uint32_t silence_timeout_ms = 0;
};

struct Ground {
  std::string name;
  /// Why it cannot be had here, or nothing; to be asked before threads or processes are started.
  std::function<std::string()> why_not;
  /// The calling thread belongs to the node from then on.
  std::function<std::unique_ptr<Fabric>(const Seat&)> join;
  /// Where that node can be found, and finds the other nodes of its group, of whom there are so
  /// many in the end.
  std::function<std::shared_ptr<MeetingPlace>(const Seat&)> meeting_place;

  friend void PrintTo(const Ground& ground, std::ostream* out) { *out << ground.name; }
};

[[nodiscard]] const std::vector<Ground>& grounds();

/// How long a test waits before it calls something hung; no figure that is hoped for.
inline constexpr std::uint32_t kPatienceMs = 120'000;

}  // namespace dunlin::test

/// The first line of a test's SetUp().
#define DUNLIN_SKIP_WITHOUT(ground) \
  if (const std::string why = (ground).why_not(); !why.empty()) GTEST_SKIP() << why

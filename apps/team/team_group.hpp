#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <dunlin/fabric.hpp>

#include "cluster/cluster.hpp"
#include "team/team.hpp"

/// A group over a network whose members are processes of a team:
///
///     const TeamGroup group(Cluster(options), {.name = "kmers", .members = 3});
///     Team team(group.team(3));
///     team.run([&](Member& me) {
///       const auto fabric = group.join(me.rank());
namespace dunlin::app {

struct TeamGroupOptions {
  std::string name = {};
  std::uint32_t members = 0;                   // 0: as many as a team() has processes
  std::chrono::milliseconds timeout{120'000};  // for the team's work
  Watch* watch = nullptr;                      // of the other hosts
};

class TeamGroup {
 public:
  /// To be made before the team is forked.
  TeamGroup(Cluster cluster, TeamGroupOptions options);

  /// The options of a team of two processes, or, between hosts, of one a host. The group must
  /// outlive the team.
  [[nodiscard]] TeamOptions team() const { return team(std::max(2U, cluster_.hosts())); }
  /// The options of a team of so many processes, on all hosts together.
  [[nodiscard]] TeamOptions team(std::uint32_t processes) const;
  [[nodiscard]] std::uint32_t members() const noexcept { return options_.members; }

  /// Returns when all are there. Nobody counts as failed for being silent unless the user says so:
  /// a member may compute for long between two polls.
  [[nodiscard]] std::unique_ptr<Fabric> join(Rank rank) const { return join(rank, 0); }
  [[nodiscard]] std::unique_ptr<Fabric> join(Rank rank, std::uint32_t silence_timeout_ms) const;
  /// The network that was chosen, and why.
  [[nodiscard]] std::string description(const Fabric& fabric) const {
    return cluster_.describe(fabric);
  }

 private:
  Cluster cluster_;
  TeamGroupOptions options_;
  std::string name_;  // of this run's group
};

}  // namespace dunlin::app

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>

#include "bench/fabric/bare.hpp"
#include "bench/fabric/networks.hpp"
#include "bench/harness/experiment.hpp"
#include "bench/harness/team.hpp"
#include "cluster/cluster.hpp"

/// A group over a network whose members are processes of a team, as figures use it:
///
///     const Group group(network, effort);
///     Team team(group.team());
///     team.run([&](Member& me) {
///       const auto fabric = group.join(me.rank());
///       const auto bare = group.bare(me, fabric.get());
namespace dunlin::bench {

/// The processes of a figure of two: between hosts, those beyond two look on.
[[nodiscard]] std::uint32_t processes_on(const app::Cluster& cluster);

class Group {
 public:
  /// Before the team is forked. As many members as the team has processes, unless it is said.
  Group(const RealNetwork& network, const Effort& effort,
        std::optional<std::uint32_t> members = {});

  /// A process for each of two members; between hosts, one a host, and two at least.
  [[nodiscard]] TeamOptions team() const { return team(processes_on(cluster_)); }
  [[nodiscard]] TeamOptions team(std::uint32_t processes) const;
  [[nodiscard]] std::uint32_t members() const noexcept { return members_; }

  /// Returns when all are there. Nobody counts as failed for being silent unless the user says so:
  /// while the bare limit has its turn, nobody polls.
  [[nodiscard]] std::unique_ptr<Fabric> join(Rank rank) const { return join(rank, 0); }
  [[nodiscard]] std::unique_ptr<Fabric> join(Rank rank, std::uint32_t silence_timeout_ms) const;
  /// Several members in one process, to be polled by its one thread.
  [[nodiscard]] std::vector<std::unique_ptr<Fabric>> join_many(Rank first,
                                                               std::uint32_t count) const;
  /// What members 0 and 1 of the team can do without Dunlin, at the address that the fabric of
  /// member 0 has. All members of the team call it.
  [[nodiscard]] std::unique_ptr<Bare> bare(Member& me, const Fabric* fabric) const;
  /// The network that was chosen, and why.
  [[nodiscard]] std::string description(const Fabric& fabric) const {
    return cluster_.describe(fabric);
  }
  /// This host's in that network; empty on shared memory.
  [[nodiscard]] std::string address(const Fabric& fabric) const;

 private:
  const RealNetwork& network_;
  app::Cluster cluster_;
  std::chrono::milliseconds timeout_;
  app::Watch* watch_;
  std::uint32_t members_;
  std::string name_;
};

}  // namespace dunlin::bench

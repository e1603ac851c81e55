#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>

#include "bench/fabric/bare.hpp"
#include "bench/fabric/networks.hpp"
#include "bench/harness/experiment.hpp"
#include "bench/harness/turns.hpp"
#include "team/team_group.hpp"

/// A group of a team as figures use it, with the limit beside it:
///
///     const Group group(network, effort);
///     Team team(group.team());
///     team.run([&](Member& me) {
///       const auto fabric = group.join(me.rank());
///       const auto bare = group.bare(me, fabric.get());
namespace dunlin::bench {

/// A group name that no other run uses, short enough for a group that others may join. It is made
/// before the team forks.
[[nodiscard]] std::string fresh_group();

/// The options of the command line that concern this network.
[[nodiscard]] app::FabricOptions options_on(const RealNetwork& network, const Effort& effort);

class Group : public app::TeamGroup {
 public:
  /// Before the team is forked. As many members as team() has processes, unless it is said.
  Group(const RealNetwork& network, const Effort& effort, std::uint32_t members = 0);

  /// Several members in one process, to be polled by its one thread; joined by a thread each, as
  /// each waits for the others. Throws what any of them threw.
  [[nodiscard]] std::vector<std::unique_ptr<Fabric>> join_many(Rank first,
                                                               std::uint32_t count) const;
  /// What members 0 and 1 of the team can do without Dunlin, at the address that the fabric of
  /// member 0 has. All members of the team call it.
  [[nodiscard]] std::unique_ptr<Bare> bare(Member& me, const Fabric* fabric) const;
  /// This host's in that network; empty on shared memory.
  [[nodiscard]] std::string address(const Fabric& fabric) const;

 private:
  const RealNetwork& network_;
};

}  // namespace dunlin::bench

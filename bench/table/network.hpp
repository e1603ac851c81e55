#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/fabric.hpp>

#include "bench/fabric/bare.hpp"
#include "bench/harness/experiment.hpp"
#include "bench/harness/team.hpp"
#include "cluster/cluster.hpp"

/// A group over a network whose members are processes of this host, as figures use it.
namespace dunlin::bench {

class NetworkGroup {
 public:
  /// Before the team is forked.
  NetworkGroup(const std::string& fabric, const Effort& effort, std::uint32_t members);

  /// Returns when all are there. Nobody counts as failed for being silent: while the bare limit has
  /// its turn, nobody polls.
  [[nodiscard]] std::unique_ptr<Fabric> join(Rank rank) const;
  /// Several members in one process, to be polled by its one thread.
  [[nodiscard]] std::vector<std::unique_ptr<Fabric>> join_many(Rank first,
                                                               std::uint32_t count) const;
  /// What the same processes can do without Dunlin.
  [[nodiscard]] Bare& bare() const noexcept { return *bare_; }
  /// The network that was chosen, and why; told by one process that joins it.
  [[nodiscard]] static std::string description(const std::string& fabric, const Effort& effort);

 private:
  app::Cluster cluster_;
  std::string group_;
  std::uint32_t members_;
  std::unique_ptr<Bare> bare_;
};

/// A turn of Dunlin's in alternate(). Before and after it all poll until all are there, so that
/// nothing that a peer waits for stays behind while the limit has its turn.
template <class Poll, class Turn>
std::optional<double> polled_turn(Member& me, Poll&& poll, Turn&& turn) {
  me.meet(poll);
  const std::optional<double> measured = turn();
  me.meet(poll);
  return measured;
}

}  // namespace dunlin::bench

#pragma once

#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric/pending_join.hpp>

#include "fabric/sim/endpoint.hpp"
#include "fabric/sim/ticks.hpp"

/// Fabrics that are formed while the world runs. Two nodes meet by a round trip once both have
/// begun; a member whose node has met all others has its fabric.
namespace dunlin::sim {

struct Simulation;

/// The state that the members of a fabric share while it is being formed.
struct Forming {
  struct Member {
    bool begun = false;
    bool given_up = false;
    std::vector<bool> has_met;  // by rank
    std::string fault;          // why forming cannot go on
  };
  std::string name;
  std::vector<Rank> nodes;  // by rank
  std::shared_ptr<Roster> roster;
  std::vector<Member> members;  // by rank

  [[nodiscard]] std::string who(Rank rank) const { return "node" + std::to_string(nodes[rank]); }
};

/// All fabrics that are not complete yet.
class PendingFabrics {
 public:
  explicit PendingFabrics(Simulation& world) : world_(world) {}

  /// Takes the node's place in the fabric; the first node makes the rendezvous. Throws Error.
  [[nodiscard]] std::shared_ptr<Forming> enter(Rank node, const std::string& name,
                                               const std::vector<Rank>& nodes);

 private:
  void connect_nodes(const std::shared_ptr<Forming>& forming, Rank rank);
  void try_to_meet(const std::shared_ptr<Forming>& forming, Rank one, Rank other, Ticks since);

  Simulation& world_;
  std::vector<std::shared_ptr<Forming>> open_;
};

class SimPendingJoin final : public PendingJoin {
 public:
  SimPendingJoin(Simulation& world, std::shared_ptr<Forming> forming, Rank rank, Ticks patience);
  ~SimPendingJoin() override;
  [[nodiscard]] std::unique_ptr<Fabric> poll() override;
  [[nodiscard]] std::string missing() const override;

 private:
  [[nodiscard]] std::string why_not() const;
  void give_up();

  Simulation& world_;
  std::shared_ptr<Forming> forming_;
  Rank rank_;
  Ticks patience_;
  Ticks deadline_;
  bool over_ = false;
};

}  // namespace dunlin::sim

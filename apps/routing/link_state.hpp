#pragma once

#include <vector>

#include "routing/events.hpp"

/// The state of all links while a list of events is written or drawn.
namespace dunlin::routing {

class LinkState {
 public:
  explicit LinkState(const Topology& topology);

  [[nodiscard]] Cost cost(ArcId arc) const { return costs_[arc]; }
  [[nodiscard]] bool lost(ArcId arc) const { return costs_[arc] == kNoLink; }
  /// The cost of the arc when it was last there.
  [[nodiscard]] Cost cost_before_loss(ArcId arc) const { return last_costs_[arc]; }
  /// The arcs of a link in the order a -> b, b -> a; one if it is one-way.
  [[nodiscard]] const std::vector<ArcId>& arcs(LinkId link) const { return arcs_of_link_[link]; }

  /// Makes the event that brings these arcs of one link to `cost`, and applies it.
  LinkEvent change(EventKind kind, const std::vector<ArcId>& arcs, Cost cost);

 private:
  const Topology& topology_;
  std::vector<Cost> costs_;
  std::vector<Cost> last_costs_;
  std::vector<std::vector<ArcId>> arcs_of_link_;
};

}  // namespace dunlin::routing

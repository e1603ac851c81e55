#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <dunlin/table.hpp>

#include "routing/cost.hpp"
#include "routing/events.hpp"
#include "routing/record.hpp"
#include "routing/topology.hpp"

/// The table of the application, and how a run proceeds on it. Rows 0 to n-1 belong to the routers,
/// row n to the station, which plays the events and collects what the routers report.
///
/// A run is a sequence of stages. The station orders one by writing its number; the routers at the
/// ends of the link write the new costs into their rows; whoever must computes; every router says
/// when it has settled; then the station orders the next.
namespace dunlin::routing {

struct Row {
  // Of a router: what others compute with. The costs come before the stage that announces them.
  std::array<Cell<Cost>, kMaxRouterLinks> link_cost;  // by slot
  Cell<std::uint32_t> changed_stage;                  // they are those of this stage
  // Of a router: what it reports, to the station only.
  Cell<Outcome> outcome;
  Cell<std::uint32_t> settled_stage;
  std::array<Cell<Length>, kMaxRouters> route_length;  // its routes by destination, in the end
  std::array<Cell<RouterId>, kMaxRouters> route_hop;
  Cell<std::uint32_t> shown_stage;
  // Of the station.
  Cell<std::uint32_t> order;
};

/// What all members know from the start: the network and the script. Outlives all routers.
class Plan {
 public:
  Plan(const Topology& topology, const std::vector<LinkEvent>& events);

  [[nodiscard]] const Topology& topology() const noexcept { return topology_; }
  [[nodiscard]] std::uint32_t routers() const noexcept { return topology_.size(); }
  [[nodiscard]] std::uint32_t members() const noexcept { return routers() + 1; }
  [[nodiscard]] std::uint32_t station() const noexcept { return routers(); }

  // Stage 0 is before all; 1 installs the first routes; then one an event; then two more.
  static constexpr std::uint32_t kStart = 1;
  [[nodiscard]] std::uint32_t show_stage() const noexcept { return last_event_stage() + 1; }
  [[nodiscard]] std::uint32_t leave_stage() const noexcept { return last_event_stage() + 2; }
  [[nodiscard]] std::uint32_t last_event_stage() const noexcept {
    return kStart + static_cast<std::uint32_t>(events_.size());
  }
  /// The event of a stage; null for the start.
  [[nodiscard]] const LinkEvent* event(std::uint32_t stage) const noexcept {
    return stage == kStart ? nullptr : &events_[stage - kStart - 1];
  }
  /// Who writes in that stage.
  [[nodiscard]] const std::vector<RouterId>& writers(std::uint32_t stage) const noexcept {
    return stage == kStart ? everyone_ : writers_[stage - kStart - 1];
  }

 private:
  const Topology& topology_;
  const std::vector<LinkEvent>& events_;
  std::vector<RouterId> everyone_;
  std::vector<std::vector<RouterId>> writers_;
};

}  // namespace dunlin::routing

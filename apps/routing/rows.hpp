#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <dunlin/table.hpp>

#include "routing/cost.hpp"
#include "routing/events.hpp"
#include "routing/record.hpp"
#include "routing/topology.hpp"
#include "text_cells.hpp"

/// The table of the application, and how a run proceeds on it. Rows 0 to n-1 belong to the routers,
/// row n to the station, which plays the events and collects what the routers report.
///
/// A run is a sequence of stages. The station orders a stage by writing its number. The routers at
/// the ends of the link write the new costs into their rows, and the routers that must compute do
/// so. Every router reports when it has settled; then the station orders the next stage. If a
/// process is lost, the station orders the end, with the reason.
namespace dunlin::routing {

using app::load_text;
using app::store_text;
using app::Text;

struct Row {
  // A router's values with which others compute. Costs come before the stage that announces them.
  std::array<Cell<Cost>, kMaxRouterLinks> link_cost;  // by slot
  Cell<std::uint32_t> changed_stage;                  // they are those of this stage
  // A router's reports, to the station only.
  Cell<Outcome> outcome;
  Cell<std::uint32_t> settled_stage;
  std::array<Cell<Length>, kMaxRouters> route_length;  // its routes by destination, in the end
  std::array<Cell<RouterId>, kMaxRouters> route_hop;
  Cell<std::uint32_t> shown_stage;
  Cell<std::uint32_t> lost_router;  // one more than the number of one that it cannot hear; or 0
  // The station's values. The reason comes before the order to give up.
  Text<7> reason;
  Cell<std::uint32_t> order;
};

/// All members know this from the start: the network, the script, and the task of each host.
/// Outlives all routers.
class Plan {
 public:
  Plan(const Topology& topology, const std::vector<LinkEvent>& events, std::uint32_t hosts = 1);

  [[nodiscard]] const Topology& topology() const noexcept { return topology_; }
  [[nodiscard]] std::uint32_t routers() const noexcept { return topology_.size(); }
  [[nodiscard]] std::uint32_t members() const noexcept { return routers() + 1; }
  [[nodiscard]] std::uint32_t station() const noexcept { return routers(); }

  // The routers are dealt out to the hosts in turn, so that most links lead to another one. The
  // station is on host 0.
  [[nodiscard]] std::uint32_t hosts() const noexcept { return hosts_; }
  [[nodiscard]] std::uint32_t host_of(std::uint32_t member) const noexcept {
    return member == station() ? 0 : member % hosts_;
  }
  /// "Denver", or with several hosts "Denver on host 2".
  [[nodiscard]] std::string name_of(std::uint32_t member) const;

  /// Equal if and only if (but for chance) two plans are.
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  /// "Abilene, 11 routers, 14 links, 10 events, 3 hosts".
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

  // An order that is no stage: something is lost.
  static constexpr std::uint32_t kGiveUp = UINT32_MAX;

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
  /// The routers that write in that stage.
  [[nodiscard]] const std::vector<RouterId>& writers(std::uint32_t stage) const noexcept {
    return stage == kStart ? everyone_ : writers_[stage - kStart - 1];
  }

 private:
  const Topology& topology_;
  const std::vector<LinkEvent>& events_;
  std::uint32_t hosts_;
  std::uint64_t hash_;
  std::string text_;
  std::vector<RouterId> everyone_;
  std::vector<std::vector<RouterId>> writers_;
};

}  // namespace dunlin::routing

#include "routing/router.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace dunlin::routing {

Router::Router(Table<Row>& table, const Plan& plan, ComputeModel model)
    : table_(table),
      plan_(plan),
      topology_(plan.topology()),
      model_(model),
      station_only_{plan.station()},
      paths_(topology_, static_cast<RouterId>(table.my_row())),
      costs_(topology_.arc_costs()) {
  for (ArcId arc = topology_.first_arc[paths_.self()];
       arc < topology_.first_arc[paths_.self() + 1U]; ++arc) {
    table_.mine().link_cost[topology_.arcs[arc].slot] = costs_[arc];
  }
  table_.mine().changed_stage = Plan::kStart;
  table_.push();

  table_.on_failure([this](auto&, std::size_t row, std::string_view why) {
    lose(static_cast<std::uint32_t>(row), why);
  });

  table_.when([this](const auto&) { return ordered() != obeyed_; }, "a new order")
      .recurrent([this] { obey(); });
  table_.when([this](const auto&) { return may_announce(); }, "wrote costs, and need not compute")
      .recurrent([this] { announce(); });
  table_.when([this](const auto&) { return may_settle(); }, "saw all of the stage")
      .recurrent([this] { settle(); });
  table_
      .when([this](const auto&) { return ordered() == Plan::kStart && seen_all_of(Plan::kStart); },
            "all costs are here")
      .once([this] { install(); });
}

std::uint32_t Router::ordered() const noexcept { return table_[plan_.station()].order; }

/// A router that is lost ends the run, or has left because the run is over: the station knows. But
/// perhaps only we cannot hear it.
void Router::lose(std::uint32_t member, std::string_view why) {
  if (finished()) return;
  if (member != plan_.station()) {
    table_.mine().lost_router = member + 1;
    static_cast<void>(table_.to(station_only_).push(&Row::lost_router));
    return;
  }
  // Its last word may have come with its end.
  if (ordered() == Plan::kGiveUp || ordered() == plan_.leave_stage()) obey();
  if (!finished()) failure_ = fmt::format("{} is lost: {}", plan_.name_of(member), why);
}

void Router::obey() {
  obeyed_ = ordered();
  if (obeyed_ == Plan::kGiveUp) {
    failure_ = load_text(table_[plan_.station()].reason);
    return;
  }
  if (obeyed_ > Plan::kStart && obeyed_ <= plan_.last_event_stage()) write_changes(obeyed_);
  if (obeyed_ == plan_.show_stage()) show();
  if (obeyed_ == plan_.leave_stage()) finished_ = true;
}

void Router::write_changes(std::uint32_t stage) {
  for (const Change& change : plan_.event(stage)->changes) {
    const Arc& arc = topology_.arcs[change.arc];
    if (arc.tail != paths_.self()) continue;
    if (unannounced_ != stage) outcome_.changed_ns = table_.fabric().now_ns();
    unannounced_ = stage;
    table_.mine().link_cost[arc.slot] = change.cost;
    table_.push(entry(&Row::link_cost, arc.slot));
  }
}

bool Router::may_announce() const noexcept { return unannounced_ != 0 && !paths_may_change(); }

/// Apart from the costs, and after our own computation: nobody computes with it.
void Router::announce() {
  table_.mine().changed_stage = unannounced_;
  table_.push(&Row::changed_stage);
  unannounced_ = 0;
}

bool Router::may_settle() const noexcept {
  const std::uint32_t stage = ordered();
  return stage > settled_ && stage <= plan_.last_event_stage() && seen_all_of(stage) &&
         !paths_may_change();
}

bool Router::paths_may_change() const noexcept {
  const std::span<const Band> bands = paths_.bands();
  for (ArcId i = 0; i < bands.size(); ++i) {
    const Arc& arc = topology_.arcs[i];
    if (!bands[i].holds(table_[arc.tail].link_cost[arc.slot])) return true;
  }
  return false;
}

bool Router::seen_all_of(std::uint32_t stage) const noexcept {
  const auto& writers = plan_.writers(stage);
  return std::all_of(writers.begin(), writers.end(),
                     [&](RouterId writer) { return table_[writer].changed_stage >= stage; });
}

void Router::install() {
  Fabric& fabric = table_.fabric();
  const std::uint64_t began_ns = fabric.now_ns();
  for (ArcId i = 0; i < costs_.size(); ++i) {
    const Arc& arc = topology_.arcs[i];
    costs_[i] = table_[arc.tail].link_cost[arc.slot];
  }
  paths_.compute(costs_);
  fabric.spend(model_.ns_per_arc * paths_.arcs_examined());
  outcome_.installed_ns = fabric.now_ns();
  outcome_.compute_ns += outcome_.installed_ns - began_ns;
  ++outcome_.computations;
  watch();
}

void Router::watch() {
  table_.when([this](const auto&) { return paths_may_change(); }, "a link left its band")
      .once([this] { install(); });
}

void Router::settle() {
  settled_ = ordered();
  outcome_.stage = settled_;
  outcome_.settled_ns = table_.fabric().now_ns();
  table_.mine().outcome = outcome_;
  table_.mine().settled_stage = settled_;
  table_.to(station_only_).push(&Row::outcome, &Row::settled_stage);
  outcome_ = {};
}

void Router::show() {
  Row& mine = table_.mine();
  for (RouterId r = 0; r < topology_.size(); ++r) {
    mine.route_length[r] = paths_.length()[r];
    mine.route_hop[r] = paths_.next_hop()[r];
  }
  mine.shown_stage = plan_.show_stage();
  table_.to(station_only_).push(&Row::route_length, &Row::route_hop, &Row::shown_stage);
}

}  // namespace dunlin::routing

#include "routing/station.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace dunlin::routing {

Station::Station(Table<Row>& table, const Plan& plan, Listener listener)
    : table_(table), plan_(plan), listener_(std::move(listener)), routers_(plan.routers()) {
  std::iota(routers_.begin(), routers_.end(), 0U);
  table_.on_failure([this](auto&, std::size_t row, std::string_view why) {
    if (finished()) return;
    failure_ = fmt::format("router {} is lost: {}", plan_.topology().routers[row].label, why);
  });
  table_.when([](const auto& t) { return t.connected(); }, "all routers are here").once([this] {
    order(Plan::kStart);
  });
}

void Station::order(std::uint32_t stage) {
  table_.mine().order = stage;
  ordered_ns_ = table_.fabric().now_ns();
  if (stage > Plan::kStart && stage <= plan_.last_event_stage()) {
    // The ends of the link first, so that they write at about the same time.
    const auto& ends = plan_.writers(stage);
    table_.to({ends.begin(), ends.end()}).push(&Row::order);
  }
  table_.push(&Row::order);
  if (stage <= plan_.last_event_stage()) {
    table_.when(all(&Row::settled_stage).over(routers_) >= stage).once([this, stage] {
      collect(stage);
      order(stage + 1);
    });
  } else if (stage == plan_.show_stage()) {
    table_.when(all(&Row::shown_stage).over(routers_) >= stage).once([this] {
      collect_tables();
      order(plan_.leave_stage());
    });
  }
}

void Station::collect(std::uint32_t stage) {
  std::vector<Outcome> outcomes;
  for (const std::uint32_t router : routers_) outcomes.push_back(table_[router].outcome);
  if (stage == Plan::kStart) {
    run_began_ns_ = ordered_ns_;
    return listener_(make_record(plan_.topology(), {}, outcomes, ordered_ns_, run_began_ns_));
  }
  std::uint64_t changed_ns = UINT64_MAX;
  for (const RouterId writer : plan_.writers(stage)) {
    changed_ns = std::min(changed_ns, outcomes[writer].changed_ns);
  }
  listener_(
      make_record(plan_.topology(), *plan_.event(stage), outcomes, changed_ns, run_began_ns_));
}

void Station::collect_tables() {
  for (const std::uint32_t router : routers_) {
    const Row& row = table_[router];
    Installed installed;
    for (RouterId r = 0; r < plan_.routers(); ++r) {
      installed.length.push_back(row.route_length[r]);
      installed.next_hop.push_back(row.route_hop[r]);
    }
    tables_.push_back(std::move(installed));
  }
}

}  // namespace dunlin::routing

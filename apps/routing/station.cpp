#include "routing/station.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace dunlin::routing {

namespace {

/// A router may notice another's death before the station does.
constexpr std::uint64_t kNewsTakesNs = 500'000'000;

}  // namespace

Station::Station(Table<Row>& table, const Plan& plan, Listener listener)
    : table_(table),
      plan_(plan),
      listener_(std::move(listener)),
      routers_(plan.routers()),
      arrived_ns_(plan.routers()) {
  std::iota(routers_.begin(), routers_.end(), 0U);
  table_.on_failure([this](auto&, std::size_t row, std::string_view why) {
    if (finished()) return;
    const auto member = static_cast<std::uint32_t>(row);
    give_up(fmt::format("router {} is lost: {}", plan_.name_of(member), why));
  });
  table_.when(any(&Row::lost_router).over(routers_) != 0U).once([this] {
    wait_for_news_of_the_lost();
  });
  table_.when([this](const auto&) { return report_is_due(); }, "a router cannot hear another")
      .once([this] { believe_report(); });
  if (plan.hosts() > 1) {
    table_.when([this](const auto&) { return news(); }, "a router has settled").recurrent([this] {
      note_arrivals();
    });
  }
  table_
      .when(
          [this](const auto& t) {
            return t.connected() && std::all_of(routers_.begin(), routers_.end(),
                                                [&](auto r) { return t[r].changed_stage != 0; });
          },
          "all routers are here")
      .once([this] { order(Plan::kStart); });
}

void Station::order(std::uint32_t stage) {
  if (!failure_.empty()) return;  // the last order was to give up
  stage_ = stage;
  std::fill(arrived_ns_.begin(), arrived_ns_.end(), 0U);
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

/// The others are told the reason, too.
void Station::give_up(const std::string& why) {
  failure_ = why;
  store_text(table_.mine().reason, why);
  table_.mine().order = Plan::kGiveUp;
  table_.push(&Row::reason, &Row::order);
}

void Station::wait_for_news_of_the_lost() {
  report_due_ns_ = table_.fabric().now_ns() + kNewsTakesNs;
}

bool Station::report_is_due() const noexcept {
  if (report_due_ns_ == UINT64_MAX) return false;
  if (table_.fabric().now_ns() >= report_due_ns_) return true;
  table_.fabric().wake_at(report_due_ns_);
  return false;
}

/// They live, and the network between them does not.
void Station::believe_report() {
  for (const std::uint32_t router : routers_) {
    const std::uint32_t lost = table_[router].lost_router;
    if (lost == 0 || lost > plan_.routers() || finished()) continue;
    give_up(fmt::format("router {} no longer hears router {}", plan_.name_of(router),
                        plan_.name_of(lost - 1)));
  }
}

void Station::stop(const std::string& why) {
  if (!finished()) give_up(why);
}

bool Station::news() const noexcept {
  return std::any_of(routers_.begin(), routers_.end(), [&](std::uint32_t router) {
    return arrived_ns_[router] == 0 && table_[router].settled_stage == stage_;
  });
}

void Station::note_arrivals() {
  const std::uint64_t now_ns = table_.fabric().now_ns();
  for (const std::uint32_t router : routers_) {
    if (arrived_ns_[router] == 0 && table_[router].settled_stage == stage_) {
      arrived_ns_[router] = now_ns;
    }
  }
}

/// Hosts have no common clock: there, a change happens when we order it, and is installed when we
/// hear of it. Returns when it happened.
std::uint64_t Station::put_on_our_clock(std::vector<Outcome>& outcomes) const {
  for (const std::uint32_t router : routers_) {
    outcomes[router].installed_ns = arrived_ns_[router];
    outcomes[router].settled_ns = arrived_ns_[router];
  }
  return ordered_ns_;
}

void Station::collect(std::uint32_t stage) {
  std::vector<Outcome> outcomes;
  for (const std::uint32_t router : routers_) outcomes.push_back(table_[router].outcome);
  std::uint64_t changed_ns = UINT64_MAX;
  for (const RouterId writer : plan_.writers(stage)) {
    changed_ns = std::min(changed_ns, outcomes[writer].changed_ns);
  }
  if (stage == Plan::kStart) changed_ns = run_began_ns_ = ordered_ns_;
  if (plan_.hosts() > 1) changed_ns = put_on_our_clock(outcomes);
  const LinkEvent* const event = plan_.event(stage);
  listener_(make_record(plan_.topology(), event == nullptr ? std::nullopt : std::optional(*event),
                        outcomes, changed_ns, run_began_ns_));
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

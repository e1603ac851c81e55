#include "routing/events.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "routing/link_state.hpp"

namespace dunlin::routing {

namespace {

/// splitmix64, so that a seed means the same on every machine.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() noexcept {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t bound) noexcept { return next() % bound; }

 private:
  std::uint64_t state_;
};

constexpr std::size_t kMostLostShare = 5;  // at most one link in five is lost at a time

/// A cost from a third to three times of the present one; 1 and more if that is 0.
Cost other_cost(Cost cost, Draws& draws) {
  if (cost == 0) return kCostUnit * (1 + draws.below(3));
  const Cost percent = draws.below(2) == 0 ? 33 + draws.below(60) : 110 + draws.below(190);
  const Cost exact = std::max<Cost>(1, cost / 100 * percent + cost % 100 * percent / 100);
  constexpr Cost kDigits = kCostUnit / 100;  // for people's sake
  return std::min(exact < kCostUnit ? exact : exact / kDigits * kDigits, kMaxCost);
}

}  // namespace

LinkState::LinkState(const Topology& topology)
    : topology_(topology),
      costs_(topology.arc_costs()),
      last_costs_(costs_),
      arcs_of_link_(topology.links.size()) {
  for (ArcId arc = 0; arc < topology.arcs.size(); ++arc) {
    auto& arcs = arcs_of_link_[topology.arcs[arc].link];
    const bool forwards = topology.arcs[arc].tail == topology.links[topology.arcs[arc].link].a;
    arcs.insert(forwards ? arcs.begin() : arcs.end(), arc);
  }
}

LinkEvent LinkState::change(EventKind kind, const std::vector<ArcId>& arcs, Cost cost) {
  const LinkId link = topology_.arcs[arcs.front()].link;
  LinkEvent event{kind, link, costs_[arcs.front()],
                  cost, {},   arcs.size() < arcs_of_link_[link].size()};
  for (const ArcId arc : arcs) {
    costs_[arc] = cost;
    if (cost != kNoLink) last_costs_[arc] = cost;
    event.changes.push_back({arc, cost});
  }
  return event;
}

std::vector<LinkEvent> random_events(const Topology& topology, std::uint32_t count,
                                     std::uint64_t seed) {
  LinkState state(topology);
  Draws draws(seed);
  std::vector<LinkId> lost;
  std::vector<LinkEvent> events;
  const std::size_t most_lost = std::max<std::size_t>(1, topology.links.size() / kMostLostShare);
  while (events.size() < count) {
    const std::size_t dice = draws.below(100);
    if (!lost.empty() && (dice < 25 || lost.size() >= most_lost)) {
      const std::size_t which = draws.below(lost.size());
      const auto& arcs = state.arcs(lost[which]);
      events.push_back(state.change(EventKind::up, arcs, state.cost_before_loss(arcs.front())));
      lost.erase(lost.begin() + static_cast<std::ptrdiff_t>(which));
      continue;
    }
    const auto link = static_cast<LinkId>(draws.below(topology.links.size()));
    const auto& arcs = state.arcs(link);
    if (state.lost(arcs.front())) continue;
    if (dice < 50) {
      events.push_back(state.change(EventKind::down, arcs, kNoLink));
      lost.push_back(link);
    } else {
      events.push_back(
          state.change(EventKind::cost, arcs, other_cost(state.cost(arcs.front()), draws)));
    }
  }
  return events;
}

std::vector<Cost> costs_after(const Topology& topology, const std::vector<LinkEvent>& events,
                              std::size_t count) {
  std::vector<Cost> costs = topology.arc_costs();
  for (std::size_t i = 0; i < count; ++i) {
    for (const Change& change : events[i].changes) costs[change.arc] = change.cost;
  }
  return costs;
}

std::string describe(const Topology& topology, const LinkEvent& event) {
  std::string link = topology.link_label(event.link);
  if (event.one_direction) {
    const Arc& arc = topology.arcs[event.changes.front().arc];
    link =
        fmt::format("{} → {}", topology.routers[arc.tail].label, topology.routers[arc.head].label);
  }
  return fmt::format("{}: {} → {}", link, show_cost(event.before), show_cost(event.after));
}

}  // namespace dunlin::routing

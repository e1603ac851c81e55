#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <unordered_map>

#include <fmt/format.h>

#include "command.hpp"
#include "routing/raw_graph.hpp"
#include "text.hpp"

namespace dunlin::routing {

namespace {

using app::BadInput;
using app::in_quotes;
using app::printable;
using Ids = std::unordered_map<std::string_view, RouterId>;

constexpr double kEarthRadiusKm = 6371.0;
constexpr double kLargestCoordinate = 1e9;

Ids number_routers(const RawGraph& raw) {
  if (raw.nodes.empty()) throw BadInput(fmt::format("{}: has no routers", raw.file));
  if (raw.nodes.size() == 1 || raw.links.empty()) {
    throw BadInput(fmt::format("{}: has {} router{} and {} links; there is nothing to route",
                               raw.file, raw.nodes.size(), raw.nodes.size() == 1 ? "" : "s",
                               raw.links.size()));
  }
  if (raw.nodes.size() > kMaxRouters) {
    throw BadInput(fmt::format("{}: has {} routers, the most is {} (kMaxRouters)", raw.file,
                               raw.nodes.size(), kMaxRouters));
  }
  Ids ids;
  for (const RawNode& node : raw.nodes) {
    const auto [other, fresh] = ids.emplace(node.id, static_cast<RouterId>(ids.size()));
    if (!fresh) {
      throw BadInput(fmt::format("{}: id {} is taken by {}", node.place, in_quotes(node.id),
                                 raw.nodes[other->second].place));
    }
  }
  return ids;
}

void check_position(const RawNode& node) {
  const auto good = [](double v) { return std::isfinite(v) && std::abs(v) <= kLargestCoordinate; };
  if (node.position && !(good(node.position->x) && good(node.position->y))) {
    throw BadInput(fmt::format("{}: its position ({}, {}) is out of range", node.place,
                               node.position->x, node.position->y));
  }
}

/// A longitude and a latitude.
bool is_on_earth(const std::optional<Position>& position) {
  return position && std::abs(position->x) <= 180 && std::abs(position->y) <= 90;
}

void add_routers(const RawGraph& raw, Topology& topology) {
  std::map<std::string, int> names;
  for (const RawNode& node : raw.nodes) ++names[node.name];
  topology.geographic = true;
  for (const RawNode& node : raw.nodes) {
    check_position(node);
    std::string label = printable(node.name, 40);
    if (node.name.empty()) {
      label = printable(node.id, 40);
    } else if (names[node.name] > 1) {
      label += fmt::format(" #{}", printable(node.id, 20));
    }
    topology.routers.push_back({node.id, label, node.position, node.name});
    topology.geographic = topology.geographic && is_on_earth(node.position);
  }
}

double great_circle_km(Position from, Position to) {
  const auto radians = [](double degrees) { return degrees * std::numbers::pi / 180; };
  const double a = std::sin(radians(to.y - from.y) / 2);
  const double b = std::sin(radians(to.x - from.x) / 2);
  const double h = a * a + std::cos(radians(from.y)) * std::cos(radians(to.y)) * b * b;
  return 2 * kEarthRadiusKm * std::asin(std::min(1.0, std::sqrt(h)));
}

/// Where the costs come from, for this input; decided once for all links.
enum class Source : std::uint8_t { unit, file, coordinates };

/// Throws if lengths could be computed from the positions, but for a router's.
void refuse_positions(const RawGraph& raw) {
  if (std::ranges::none_of(raw.nodes, is_on_earth, &RawNode::position)) return;
  const RawNode& node = *std::ranges::find_if_not(raw.nodes, is_on_earth, &RawNode::position);
  const std::string position =
      node.position ? fmt::format("its position ({}, {}) is no longitude and latitude",
                                  node.position->x, node.position->y)
                    : "it has no position";
  throw BadInput(fmt::format(
      "{}: router {}: {}, so that lengths cannot be computed from the coordinates; try --cost unit",
      node.place, in_quotes(node.id), position));
}

Source choose_source(const RawGraph& raw, const CostRule& rule, const Topology& topology) {
  if (rule.kind == CostRule::Kind::unit) return Source::unit;
  const auto bare = std::find_if(raw.links.begin(), raw.links.end(),
                                 [](const RawLink& link) { return !link.cost; });
  if (bare == raw.links.end()) return Source::file;
  if (rule.kind == CostRule::Kind::attribute) {
    throw BadInput(fmt::format("{}: has no {} to take its cost from (--cost)", bare->place,
                               in_quotes(rule.attribute)));
  }
  if (raw.cost_attribute.empty() && topology.geographic) return Source::coordinates;
  if (rule.kind == CostRule::Kind::best) return Source::unit;
  if (raw.cost_attribute.empty()) refuse_positions(raw);
  throw BadInput(fmt::format(
      "{}: has no length (\"dist\", \"length\" or \"distance\"); try --cost unit", bare->place));
}

std::string describe_source(Source source, const RawGraph& raw, const CostRule& rule) {
  switch (source) {
    case Source::file:
      return rule.kind == CostRule::Kind::attribute
                 ? printable(rule.attribute)
                 : fmt::format("length ({})", raw.cost_attribute);
    case Source::coordinates:
      return "length (km, from the coordinates)";
    case Source::unit:
      break;
  }
  return rule.kind == CostRule::Kind::unit ? "unit" : "unit (not every link has a length)";
}

class LinkAdder {
 public:
  LinkAdder(const RawGraph& raw, const Ids& ids, Source source, Topology& topology)
      : raw_(raw), ids_(ids), source_(source), topology_(topology) {}

  void add(const RawLink& raw) {
    const RouterId a = find(raw, "source", raw.source);
    const RouterId b = find(raw, "target", raw.target);
    const Cost cost = cost_of_link(raw, a, b);
    if (a == b) {
      topology_.notes.push_back(fmt::format("{}: a link from {} to itself, left out", raw.place,
                                            topology_.routers[a].label));
      return;
    }
    const bool swap = !raw_.directed && a > b;
    const auto key = swap ? std::pair(b, a) : std::pair(a, b);
    const auto [other, fresh] = by_ends_.emplace(key, topology_.links.size());
    if (fresh) {
      topology_.links.push_back({a, b, cost, raw_.directed});
      return;
    }
    Cost& kept = topology_.links[other->second].cost;
    topology_.notes.push_back(
        fmt::format("{}: a second link between {} and {}; the cheaper of {} "
                    "and {} is kept",
                    raw.place, topology_.routers[a].label, topology_.routers[b].label,
                    show_cost(kept), show_cost(cost)));
    kept = std::min(kept, cost);
  }

 private:
  [[nodiscard]] RouterId find(const RawLink& raw, const char* end, const std::string& id) const {
    const auto found = ids_.find(id);
    if (found == ids_.end()) {
      throw BadInput(fmt::format("{}: {}: there is no router {}", raw.place, end, in_quotes(id)));
    }
    return found->second;
  }
  [[nodiscard]] Cost cost_of_link(const RawLink& raw, RouterId a, RouterId b) const {
    // A wrong number is refused even if this run would not use it.
    const Cost in_file = raw.cost ? cost_from(*raw.cost, raw.cost_place) : kCostUnit;
    if (source_ == Source::file) return in_file;
    if (source_ == Source::unit) return kCostUnit;
    return cost_from(
        great_circle_km(*topology_.routers[a].position, *topology_.routers[b].position), raw.place);
  }

  const RawGraph& raw_;
  const Ids& ids_;
  Source source_;
  Topology& topology_;
  std::map<std::pair<RouterId, RouterId>, std::size_t> by_ends_;
};

/// Routers that can be reached from router 0, along the arcs or against them.
std::vector<bool> reach(const Topology& topology, bool backwards) {
  std::vector<bool> seen(topology.size());
  std::vector<RouterId> todo = {0};
  seen[0] = true;
  while (!todo.empty()) {
    const RouterId at = todo.back();
    todo.pop_back();
    for (const Arc& arc : topology.arcs) {
      const RouterId from = backwards ? arc.head : arc.tail;
      const RouterId to = backwards ? arc.tail : arc.head;
      if (from != at || seen[to]) continue;
      seen[to] = true;
      todo.push_back(to);
    }
  }
  return seen;
}

void check_connected(const Topology& topology) {
  const auto& first = topology.routers[0].label;
  for (const bool backwards : {false, true}) {
    const auto seen = reach(topology, backwards);
    const auto cut = std::count(seen.begin(), seen.end(), false);
    if (cut == 0) continue;
    const auto& lost = topology.routers[static_cast<std::size_t>(
        std::find(seen.begin(), seen.end(), false) - seen.begin())];
    throw BadInput(
        fmt::format("{}: the network is not connected: no path leads from {} to {}{}",
                    topology.source, backwards ? lost.label : first, backwards ? first : lost.label,
                    cut > 1 ? fmt::format(" (nor for {} more routers)", cut - 1) : std::string()));
  }
}

}  // namespace

void number_arcs(Topology& topology) {
  topology.arcs.clear();
  for (LinkId link = 0; link < topology.links.size(); ++link) {
    const Link& ends = topology.links[link];
    topology.arcs.push_back({ends.a, ends.b, 0, link});
    if (!ends.one_way) topology.arcs.push_back({ends.b, ends.a, 0, link});
  }
  std::sort(topology.arcs.begin(), topology.arcs.end(), [](const Arc& x, const Arc& y) {
    return std::pair(x.tail, x.head) < std::pair(y.tail, y.head);
  });
  topology.first_arc.assign(topology.size() + 1, static_cast<ArcId>(topology.arcs.size()));
  for (ArcId arc = static_cast<ArcId>(topology.arcs.size()); arc-- > 0;) {
    topology.first_arc[topology.arcs[arc].tail] = arc;
  }
  for (std::size_t r = topology.size(); r-- > 0;) {  // routers without arcs
    topology.first_arc[r] = std::min(topology.first_arc[r], topology.first_arc[r + 1]);
  }
  for (ArcId arc = 0; arc < topology.arcs.size(); ++arc) {
    Arc& numbered = topology.arcs[arc];
    numbered.slot = static_cast<std::uint16_t>(arc - topology.first_arc[numbered.tail]);
  }
}

Topology build_topology(const RawGraph& raw, const CostRule& rule) {
  Topology topology;
  topology.name = printable(raw.name);
  topology.source = raw.file;
  const Ids ids = number_routers(raw);
  add_routers(raw, topology);
  const Source source = choose_source(raw, rule, topology);
  topology.cost_text = describe_source(source, raw, rule);
  LinkAdder adder(raw, ids, source, topology);
  for (const RawLink& link : raw.links) adder.add(link);
  number_arcs(topology);
  check_connected(topology);
  return topology;
}

}  // namespace dunlin::routing

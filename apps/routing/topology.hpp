#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "routing/cost.hpp"

/// The network that is routed, as the readers make it from their input after all checks.
namespace dunlin::routing {

using RouterId = std::uint16_t;
using LinkId = std::uint32_t;
using ArcId = std::uint32_t;

struct Position {
  double x;  // degrees east, if geographic
  double y;  // degrees north
};

struct Site {
  std::string id;     // in the input
  std::string label;  // for people: unique, never empty
  std::optional<Position> position;
  std::string name = {};  // in the input: may be empty, or another's as well
};

struct Link {
  RouterId a;
  RouterId b;
  Cost cost;
  bool one_way;  // only from a to b
};

/// One direction of a link. Its cost stands in the row of `tail`, at `slot`.
struct Arc {
  RouterId tail;
  RouterId head;
  std::uint16_t slot;
  LinkId link;
};

struct Topology {
  std::string name;
  std::string source;     // the file, or the built-in's own name
  std::string cost_text;  // "length (dist)", "unit", ...
  bool geographic = false;
  std::vector<Site> routers;
  std::vector<Link> links;
  std::vector<std::string> notes;  // what was put right, a sentence each

  // Made of the links: ordered by tail, then head.
  std::vector<Arc> arcs;
  std::vector<ArcId> first_arc;  // by router, and one past the last

  [[nodiscard]] std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(routers.size());
  }
  /// The cost of every arc before any event.
  [[nodiscard]] std::vector<Cost> arc_costs() const;
  [[nodiscard]] std::string link_label(LinkId link) const;
};

/// Which number of a link is its cost.
struct CostRule {
  enum class Kind : std::uint8_t { best, unit, length, attribute };
  Kind kind = Kind::best;  // length if every link has one, else unit
  std::string attribute;   // a name, of Kind::attribute

  [[nodiscard]] static CostRule parse(std::string_view text);
};

/// A file in node-link JSON or GraphML, or "hub-ring:N". Throws BadInput.
[[nodiscard]] Topology load_topology(const std::string& name, const CostRule& rule);

/// N routers: router 0, the hub, has a cheap link to each of the others, which form a ring of dear
/// ones, so that everyone uses every link of the hub. N >= 4.
[[nodiscard]] Topology hub_ring(std::uint32_t routers, const CostRule& rule);

}  // namespace dunlin::routing

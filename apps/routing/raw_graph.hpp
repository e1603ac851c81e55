#pragma once

#include <optional>
#include <string>
#include <vector>

#include "routing/topology.hpp"

/// A graph as it stands in a file, before anything is believed.
namespace dunlin::routing {

struct RawNode {
  std::string id;
  std::string name;
  std::optional<Position> position;
  std::string place;  // "net.json: nodes[3]"
};

struct RawLink {
  std::string source;
  std::string target;
  std::optional<double> cost;  // as the rule asks for; none if the link does not say
  std::string place;
  std::string cost_place;
};

struct RawGraph {
  std::string name;
  std::string file;
  std::string cost_attribute;  // where the costs were found
  bool directed = false;
  std::vector<RawNode> nodes;
  std::vector<RawLink> links;
};

/// The names under which files keep a link's length.
inline constexpr std::string_view kLengthAttributes[] = {"dist", "length", "distance"};

[[nodiscard]] RawGraph read_node_link_json(const std::string& file, const std::string& content,
                                           const CostRule& rule);
[[nodiscard]] RawGraph read_graphml(const std::string& file, const std::string& content,
                                    const CostRule& rule);

/// Checks everything, drops loops and dear parallels (and notes it), and numbers routers and arcs.
[[nodiscard]] Topology build_topology(const RawGraph& raw, const CostRule& rule);
/// Makes `arcs` and `first_arc` of `links`.
void number_arcs(Topology& topology);

}  // namespace dunlin::routing

#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "command.hpp"
#include "routing/raw_graph.hpp"
#include "routing/topology.hpp"

namespace dunlin::routing::testing_support {

/// Four routers: a cheap path a - b - c - d and a dear link a - d.
inline constexpr const char* kSquare = R"({
  "directed": false, "graph": {"name": "Square"},
  "nodes": [{"id": "a"}, {"id": "b", "name": "Bern"}, {"id": 7, "name": "New York"}, {"id": "d"}],
  "links": [{"source": "a", "target": "b", "dist": 1.5}, {"source": "b", "target": 7, "dist": 1},
            {"source": 7, "target": "d", "dist": 1}, {"source": "a", "target": "d", "dist": 10}]
})";

inline Topology from_json(const std::string& text, const CostRule& rule = {}) {
  return build_topology(read_node_link_json("net.json", text, rule), rule);
}
inline Topology from_graphml(const std::string& text, const CostRule& rule = {}) {
  return build_topology(read_graphml("net.graphml", text, rule), rule);
}

/// What the reader has against its input; empty if it takes it.
template <class Work>
std::string complaint(Work work) {
  try {
    work();
  } catch (const app::BadInput& error) {
    return error.what();
  }
  return {};
}

/// A connected network of small costs (zero among them), so that ties are common.
inline Topology random_network(std::uint32_t routers, std::uint32_t extra_links,
                               std::mt19937_64& draw) {
  RawGraph raw;
  raw.file = "random";
  raw.cost_attribute = "dist";
  const auto link = [&](std::uint32_t a, std::uint32_t b) {
    raw.links.push_back({std::to_string(a), std::to_string(b), static_cast<double>(draw() % 6),
                         "random", "random"});
  };
  for (std::uint32_t r = 0; r < routers; ++r) {
    raw.nodes.push_back({std::to_string(r), "", {}, "random"});
    if (r > 0) link(static_cast<std::uint32_t>(draw() % r), r);
  }
  for (std::uint32_t i = 0; i < extra_links; ++i) {
    link(static_cast<std::uint32_t>(draw() % routers),
         static_cast<std::uint32_t>(draw() % routers));
  }
  return build_topology(raw, {});
}

}  // namespace dunlin::routing::testing_support

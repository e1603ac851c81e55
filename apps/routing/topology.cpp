#include "routing/topology.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "command.hpp"
#include "read_file.hpp"
#include "routing/raw_graph.hpp"
#include "text.hpp"

namespace dunlin::routing {

namespace {

using app::BadInput;
using app::in_quotes;
using app::printable;

constexpr std::string_view kHubRing = "hub-ring:";
constexpr Cost kHubCost = 1 * kCostUnit;
constexpr Cost kRingCost = 100 * kCostUnit;
constexpr std::uint32_t kLeastHubRing = 4;  // a ring of three has no way round that is longer

std::uint32_t read_hub_ring_size(std::string_view text) {
  std::uint32_t routers = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), routers);
  if (failure != std::errc{} || end != text.data() + text.size() || routers < kLeastHubRing ||
      routers > kMaxRouters) {
    throw BadInput(fmt::format("--topology {}{}: N must be a whole number from {} to {}", kHubRing,
                               printable(text), kLeastHubRing, kMaxRouters));
  }
  return routers;
}

bool same_but_for_case(const std::string& a, const std::string& b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

CostRule CostRule::parse(std::string_view text) {
  if (text.empty()) throw BadInput("--cost: needs unit, length, or the name of an attribute");
  if (text == "unit") return {Kind::unit, {}};
  if (text == "length") return {Kind::length, {}};
  return {Kind::attribute, std::string(text)};
}

std::vector<Cost> Topology::arc_costs() const {
  std::vector<Cost> costs(arcs.size());
  for (std::size_t i = 0; i < arcs.size(); ++i) costs[i] = links[arcs[i].link].cost;
  return costs;
}

std::string Topology::link_label(LinkId link) const {
  return fmt::format("{} {} {}", routers[links[link].a].label, links[link].one_way ? "→" : "–",
                     routers[links[link].b].label);
}

Topology hub_ring(std::uint32_t routers, const CostRule& rule) {
  Topology topology;
  topology.name = fmt::format("hub-ring:{}", routers);
  topology.source = topology.name;
  const bool unit = rule.kind == CostRule::Kind::unit;
  if (rule.kind == CostRule::Kind::attribute) {
    throw BadInput(fmt::format("{}: its links have no attribute {}; use --cost length or unit",
                               topology.name, in_quotes(rule.attribute)));
  }
  topology.cost_text = unit ? "unit" : "hub links 1, ring links 100";
  for (std::uint32_t r = 0; r < routers; ++r) {
    topology.routers.push_back({std::to_string(r), r == 0 ? "hub" : std::to_string(r), {}});
  }
  const auto add = [&](std::uint32_t a, std::uint32_t b, Cost cost) {
    topology.links.push_back(
        {static_cast<RouterId>(a), static_cast<RouterId>(b), unit ? kCostUnit : cost, false});
  };
  for (std::uint32_t r = 1; r < routers; ++r) add(0, r, kHubCost);
  for (std::uint32_t r = 1; r < routers; ++r) add(r, r + 1 < routers ? r + 1 : 1, kRingCost);
  number_arcs(topology);
  return topology;
}

Topology load_topology(const std::string& name, const CostRule& rule) {
  if (name.starts_with(kHubRing)) {
    return hub_ring(read_hub_ring_size(std::string_view(name).substr(kHubRing.size())), rule);
  }
  const std::string content = app::read_file(name);
  const std::string file = printable(name, 300);
  const auto first = content.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string::npos) throw BadInput(fmt::format("{}: the file is empty", file));
  RawGraph raw = content[first] == '<' ? read_graphml(file, content, rule)
                                       : read_node_link_json(file, content, rule);
  const std::string stem = std::filesystem::path(name).stem().string();
  if (raw.name.empty() || same_but_for_case(raw.name, stem)) raw.name = stem;
  return build_topology(raw, rule);
}

}  // namespace dunlin::routing

#include "routing/check.hpp"

#include <limits>

#include <boost/graph/adjacency_matrix.hpp>
#include <boost/graph/floyd_warshall_shortest.hpp>
#include <fmt/format.h>

#include "routing/paths.hpp"

namespace dunlin::routing {

namespace {

constexpr std::size_t kMostDifferences = 10;

using Weight = std::int64_t;
using Graph = boost::adjacency_matrix<boost::directedS, boost::no_property,
                                      boost::property<boost::edge_weight_t, Weight>>;
constexpr Weight kInfinite = std::numeric_limits<Weight>::max();

static_assert(kMaxCost <= static_cast<Cost>(kInfinite) / (4 * kMaxRouters));

std::vector<std::vector<Weight>> all_distances(const Topology& topology,
                                               std::span<const Cost> costs) {
  Graph graph(topology.size());
  for (ArcId arc = 0; arc < topology.arcs.size(); ++arc) {
    if (costs[arc] == kNoLink) continue;
    boost::add_edge(topology.arcs[arc].tail, topology.arcs[arc].head,
                    static_cast<Weight>(costs[arc]), graph);
  }
  std::vector<std::vector<Weight>> distances(topology.size(),
                                             std::vector<Weight>(topology.size(), kInfinite));
  boost::floyd_warshall_all_pairs_shortest_paths(graph, distances);
  return distances;
}

class Judge {
 public:
  Judge(const Topology& topology, std::span<const Cost> costs, std::span<const Installed> tables)
      : topology_(topology), tables_(tables), distances_(all_distances(topology, costs)) {
    cost_between_.assign(topology.size(), std::vector<Cost>(topology.size(), kNoLink));
    for (ArcId arc = 0; arc < topology.arcs.size(); ++arc) {
      cost_between_[topology.arcs[arc].tail][topology.arcs[arc].head] = costs[arc];
    }
  }

  void compare(RouterId from, RouterId to) {
    ++verdict_.compared;
    const Weight expected = distances_[from][to];
    verdict_.unreachable += expected == kInfinite ? 1 : 0;
    const Cost said = cost_of(tables_[from].length[to]);
    const Cost right = expected == kInfinite ? kNoLink : static_cast<Cost>(expected);
    if (said != right) {
      return differ(from, to,
                    fmt::format("its table says {}, Boost.Graph {}", show(said), show(right)));
    }
    if (const std::string problem = follow(from, to, right); !problem.empty()) {
      differ(from, to, problem);
    }
  }
  [[nodiscard]] Verdict verdict() && { return std::move(verdict_); }

 private:
  static std::string show(Cost cost) { return cost == kNoLink ? "unreachable" : show_cost(cost); }

  void differ(RouterId from, RouterId to, const std::string& how) {
    ++verdict_.wrong;
    if (verdict_.differences.size() == kMostDifferences) return;
    verdict_.differences.push_back(fmt::format("{} to {}: {}", topology_.routers[from].label,
                                               topology_.routers[to].label, how));
  }
  /// Follows the way that a message would take. Returns what is wrong with it; empty if nothing is.
  [[nodiscard]] std::string follow(RouterId from, RouterId to, Cost expected) const {
    if (expected == kNoLink) {
      return tables_[from].next_hop[to] == kNoRouter ? "" : "it has a next hop to nowhere";
    }
    Cost cost = 0;
    RouterId at = from;
    for (std::uint32_t hops = 0; at != to; ++hops) {
      const RouterId next = tables_[at].next_hop[to];
      const auto& here = topology_.routers[at].label;
      if (next >= topology_.size()) return fmt::format("at {} there is no next hop", here);
      const Cost link = cost_between_[at][next];
      if (link == kNoLink) {
        return fmt::format("{} forwards to {}, to which it has no link", here,
                           topology_.routers[next].label);
      }
      if (hops == topology_.size()) return fmt::format("messages run in a circle through {}", here);
      cost += link;
      at = next;
    }
    if (cost == expected) return {};
    return fmt::format("its next hops lead there at a cost of {}, the best is {}", show(cost),
                       show(expected));
  }

  const Topology& topology_;
  std::span<const Installed> tables_;
  std::vector<std::vector<Weight>> distances_;
  std::vector<std::vector<Cost>> cost_between_;
  Verdict verdict_;
};

}  // namespace

Verdict check(const Topology& topology, std::span<const Cost> costs,
              std::span<const Installed> tables) {
  Judge judge(topology, costs, tables);
  for (RouterId from = 0; from < topology.size(); ++from) {
    for (RouterId to = 0; to < topology.size(); ++to) {
      if (from != to) judge.compare(from, to);
    }
  }
  return std::move(judge).verdict();
}

}  // namespace dunlin::routing

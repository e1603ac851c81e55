#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "routing/cost.hpp"
#include "routing/topology.hpp"

/// The independent judge: all shortest paths by Boost.Graph, from costs that never went through a
/// table, against what every router says that it installed.
namespace dunlin::routing {

/// One router's forwarding table, by destination.
struct Installed {
  std::vector<Length> length;
  std::vector<RouterId> next_hop;
};

struct Verdict {
  std::uint64_t compared = 0;     // pairs of routers
  std::uint64_t unreachable = 0;  // those without any path
  std::uint64_t wrong = 0;
  std::vector<std::string> differences;  // a sentence each, the first few

  [[nodiscard]] bool agrees() const noexcept { return wrong == 0; }
};

/// Compares each distance with Boost.Graph's, and follows the next hops from every router to every
/// destination: they must arrive, at exactly that cost. `costs` has one entry an arc.
[[nodiscard]] Verdict check(const Topology& topology, std::span<const Cost> costs,
                            std::span<const Installed> tables);

}  // namespace dunlin::routing

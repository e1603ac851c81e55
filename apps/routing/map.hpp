#pragma once

#include <vector>

#include "routing/topology.hpp"

/// Where to draw the routers.
namespace dunlin::routing {

struct Point {
  double x;  // to the right
  double y;  // downwards
};

/// Points in a box of width 1 and height `aspect` (between 0.5 and 1).
struct Map {
  std::vector<Point> points;
  double aspect;
};

/// By the routers' coordinates if they have any (an unplaced router goes between its neighbours),
/// else by forces: links pull, routers push. Routers on one spot are moved apart so that each can
/// be seen. A function of the topology alone.
[[nodiscard]] Map draw_map(const Topology& topology);

}  // namespace dunlin::routing

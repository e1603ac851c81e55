#include "routing/map.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

namespace dunlin::routing {

namespace {

constexpr double kLowestAspect = 0.5;

Point mercator(Position at) {
  const double latitude = std::clamp(at.y, -80.0, 80.0) * std::numbers::pi / 180;
  return {at.x * std::numbers::pi / 180, -std::log(std::tan(std::numbers::pi / 4 + latitude / 2))};
}

std::vector<Point> on_a_circle(const Topology& topology) {
  std::vector<Point> points;
  for (std::size_t r = 0; r < topology.size(); ++r) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(r) / topology.size();
    points.push_back({std::sin(angle), -std::cos(angle)});
  }
  return points;
}

/// One round of Fruchterman and Reingold's forces; `heat` bounds how far a router moves.
void move_by_forces(const Topology& topology, std::vector<Point>& points, double heat) {
  const double ideal = 2.0 / std::sqrt(static_cast<double>(points.size()));
  std::vector<Point> force(points.size(), {0, 0});
  const auto apply = [&](std::size_t a, std::size_t b, double strength, Point along) {
    force[a].x += along.x * strength;
    force[a].y += along.y * strength;
    force[b].x -= along.x * strength;
    force[b].y -= along.y * strength;
  };
  for (std::size_t a = 0; a < points.size(); ++a) {
    for (std::size_t b = a + 1; b < points.size(); ++b) {
      const Point apart{points[a].x - points[b].x, points[a].y - points[b].y};
      const double square = std::max(1e-6, apart.x * apart.x + apart.y * apart.y);
      apply(a, b, ideal * ideal / square, apart);
    }
  }
  for (const Link& link : topology.links) {
    const Point apart{points[link.a].x - points[link.b].x, points[link.a].y - points[link.b].y};
    apply(link.a, link.b, -std::hypot(apart.x, apart.y) / ideal, apart);
  }
  for (std::size_t r = 0; r < points.size(); ++r) {
    const double size = std::max(1e-9, std::hypot(force[r].x, force[r].y));
    const double step = std::min(size, heat) / size;
    points[r].x += force[r].x * step;
    points[r].y += force[r].y * step;
  }
}

std::vector<Point> by_forces(const Topology& topology) {
  std::vector<Point> points = on_a_circle(topology);
  constexpr int kRounds = 300;
  for (int round = 0; round < kRounds; ++round) {
    move_by_forces(topology, points, 0.1 * (1 - static_cast<double>(round) / kRounds));
  }
  return points;
}

std::vector<Point> by_coordinates(const Topology& topology) {
  std::vector<std::optional<Point>> known;
  Point sum{0, 0};
  double placed = 0;
  for (const Site& router : topology.routers) {
    known.push_back({});
    if (!router.position) continue;
    const Position at = *router.position;
    known.back() = topology.geographic ? mercator(at) : Point{at.x, -at.y};
    sum.x += known.back()->x;
    sum.y += known.back()->y;
    placed += 1;
  }
  std::vector<Point> points;
  points.reserve(known.size());
  for (const auto& point : known) {
    points.push_back(point.value_or(Point{sum.x / placed, sum.y / placed}));
  }
  constexpr int kRounds = 50;  // enough for unplaced routers to settle between their neighbours
  for (int round = 0; round < kRounds && placed < static_cast<double>(points.size()); ++round) {
    for (std::size_t r = 0; r < points.size(); ++r) {
      if (known[r]) continue;
      Point mean{0, 0};
      double neighbours = 0;
      for (const Link& link : topology.links) {
        if (link.a != r && link.b != r) continue;
        const Point& other = points[link.a == r ? link.b : link.a];
        mean = {mean.x + other.x, mean.y + other.y};
        neighbours += 1;
      }
      if (neighbours > 0) points[r] = {mean.x / neighbours, mean.y / neighbours};
    }
  }
  return points;
}

/// Scales the points into the map's box.
Map fit(std::vector<Point> points) {
  const auto [left, right] = std::minmax_element(
      points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
  const auto [top, bottom] = std::minmax_element(
      points.begin(), points.end(), [](const Point& a, const Point& b) { return a.y < b.y; });
  const Point corner{left->x, top->y};
  const double width = std::max(right->x - left->x, 1e-9);
  const double height = std::max(bottom->y - top->y, 1e-9);
  const double aspect = std::clamp(height / width, kLowestAspect, 1.0);
  const double scale = std::min(1 / width, aspect / height);
  const Point margin{(1 - width * scale) / 2, (aspect - height * scale) / 2};
  for (Point& p : points) {
    p = {margin.x + (p.x - corner.x) * scale, margin.y + (p.y - corner.y) * scale};
  }
  return {std::move(points), aspect};
}

/// Moves routers apart that would hide each other.
void spread(std::vector<Point>& points) {
  const double least = std::min(0.042, 0.35 / std::sqrt(static_cast<double>(points.size())));
  for (int round = 0; round < 60; ++round) {
    for (std::size_t a = 0; a < points.size(); ++a) {
      for (std::size_t b = a + 1; b < points.size(); ++b) {
        const Point apart{points[b].x - points[a].x, points[b].y - points[a].y};
        const double distance = std::hypot(apart.x, apart.y);
        if (distance >= least) continue;
        const double own_way = static_cast<double>(a * 7 + b * 13);  // if two are on one spot
        const Point direction = distance < 1e-9 ? Point{std::cos(own_way), std::sin(own_way)}
                                                : Point{apart.x / distance, apart.y / distance};
        const double push = (least - distance) / 2;
        points[a] = {points[a].x - direction.x * push, points[a].y - direction.y * push};
        points[b] = {points[b].x + direction.x * push, points[b].y + direction.y * push};
      }
    }
  }
}

}  // namespace

Map draw_map(const Topology& topology) {
  const bool placed = std::any_of(topology.routers.begin(), topology.routers.end(),
                                  [](const Site& r) { return r.position.has_value(); });
  Map map = fit(placed ? by_coordinates(topology) : by_forces(topology));
  spread(map.points);
  return fit(std::move(map.points));
}

}  // namespace dunlin::routing

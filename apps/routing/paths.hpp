#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "routing/cost.hpp"
#include "routing/topology.hpp"

/// The pure core of routing: shortest paths from one router, and the question which later changes
/// of costs they survive. No table, no clock.
namespace dunlin::routing {

inline constexpr RouterId kNoRouter = UINT16_MAX;

/// The costs of a link that leave a router's shortest paths as they are: `low` to `high`, both
/// included. On a path it is the cost that was used and no other; off all paths it is everything
/// that is not a short cut.
struct Band {
  Cost low;
  Cost high;
  [[nodiscard]] bool holds(Cost cost) const noexcept { return cost >= low && cost <= high; }
  friend bool operator==(const Band&, const Band&) = default;
};

/// Shortest paths from one router to all. Equal paths are told apart by number of links, then by
/// the order of arcs, so the same costs always give the same paths. Allocates only when made.
///
///     Paths paths(topology, self);
///     paths.compute(costs);              // one cost an arc
///     paths.next_hop()[destination];     // kNoRouter: unreachable, or self
///     paths.bands()[arc].holds(cost);    // for all arcs: the paths are still the shortest
///
/// Why the bands are right: let every arc on a path cost what it did, and no other arc u -> v make
/// length(u) + cost < length(v). Then the paths still have their lengths, and no sequence of arcs
/// can be shorter than the length of its end, by induction over the sequence.
class Paths {
 public:
  Paths(const Topology& topology, RouterId self);

  void compute(std::span<const Cost> costs);

  [[nodiscard]] RouterId self() const noexcept { return self_; }
  [[nodiscard]] std::span<const Length> length() const noexcept { return length_; }
  [[nodiscard]] std::span<const RouterId> next_hop() const noexcept { return next_hop_; }
  [[nodiscard]] std::span<const Band> bands() const noexcept { return bands_; }
  /// Arcs examined by the last compute(): what a model of its duration is made of.
  [[nodiscard]] std::uint32_t arcs_examined() const noexcept { return arcs_examined_; }

 private:
  struct Candidate {
    Length length;
    RouterId router;
    ArcId via;
  };
  static bool comes_later(const Candidate& x, const Candidate& y) noexcept;
  void settle(const Candidate& best, std::span<const Cost> costs);
  void make_bands(std::span<const Cost> costs);

  const Topology& topology_;
  RouterId self_;
  std::vector<Length> length_;
  std::vector<RouterId> next_hop_;
  std::vector<ArcId> via_;
  std::vector<bool> settled_;
  std::vector<Candidate> heap_;
  std::vector<Band> bands_;
  std::uint32_t arcs_examined_ = 0;
};

}  // namespace dunlin::routing

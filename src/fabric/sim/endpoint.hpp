#pragma once

#include <cstdint>
#include <vector>

#include <dunlin/fabric.hpp>

#include "fabric/sim/flight.hpp"

namespace dunlin::sim {

class SimBackend;

/// A node's place in a fabric, numbered over all fabrics of a world: those of one fabric follow
/// each other by rank. The first fabric's are its ranks.
using EndpointId = std::uint32_t;

/// What a endpoint is, and who sits there.
struct EndpointFacts {
  Rank node = 0;
  EndpointId first = 0;          // of its fabric
  std::uint32_t members = 0;     // of its fabric
  std::uint64_t links_at = 0;    // plus the other end's endpoint: the link's place
  SimBackend* fabric = nullptr;  // null: not formed yet, or gone
  bool gone = false;
  FlightList early = {};        // arrived before the fabric was formed
  std::vector<Rank> left = {};  // members that left before it was
};

}  // namespace dunlin::sim

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>

#include "fabric/sim/flight.hpp"

namespace dunlin::sim {

class SimBackend;

struct Link;

/// A node's place in a fabric, numbered over all fabrics of a world. In the first fabric, the
/// numbers are the ranks.
using EndpointId = std::uint32_t;
inline constexpr EndpointId kNoEndpoint = UINT32_MAX;

/// All endpoints of one fabric. A rank can have several: members that cannot hear of each other may
/// give it to two newcomers, of which only one gets into the group.
struct Roster {
  std::string name;
  std::vector<EndpointId> endpoints;
};
/// The endpoints that one member knows, by rank; none for a member that has not come.
using Endpoints = std::vector<EndpointId>;

/// An endpoint, and the node that it belongs to.
struct EndpointFacts {
  Rank node = 0;
  Rank rank = 0;
  std::shared_ptr<Roster> roster = {};
  std::size_t slot = 0;           // index in the roster
  std::vector<Link*> links = {};  // links to the peers, by slot; made when first used
  SimBackend* fabric = nullptr;   // null: the fabric is not formed yet, or gone
  bool entered = false;           // whether a newcomer has begun to enter
  bool gone = false;
  FlightList early = {};        // arrived before the fabric was formed
  std::vector<Rank> left = {};  // members that left before the fabric was formed
};

}  // namespace dunlin::sim

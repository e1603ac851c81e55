#include <algorithm>

#include "fabric/sim/simulation.hpp"

/// Nodes, the paths between them, and their places in the fabrics.
namespace dunlin::sim {

void Network::add_node() {
  nics_.emplace_back();
  endpoints_of_.emplace_back();
  paths_.emplace_back();
}

Path& Network::path(Rank from, Rank to) {
  std::vector<std::unique_ptr<Path>>& row = paths_[from];
  if (row.size() <= to) row.resize(nics_.size());
  std::unique_ptr<Path>& slot = row[to];
  if (slot) return *slot;
  slot = std::make_unique<Path>();
  const Profile& profile = world_.profile;
  if (from % profile.racks != to % profile.racks) {
    slot->distance = profile.cross_rack_latency;
    slot->pace = 1.0 / profile.cross_rack_bandwidth;
  }
  return *slot;
}

Link& Network::link(EndpointId from, EndpointId to) {
  std::vector<Link*>& row = endpoints_[from].links;
  const std::size_t slot = endpoints_[to].slot;
  if (row.size() <= slot) row.resize(endpoints_[from].roster->endpoints.size());
  if (row[slot] != nullptr) return *row[slot];
  links_.push_back(
      std::make_unique<Link>(links_.size(), from, to, path(node_of(from), node_of(to))));
  return *(row[slot] = links_.back().get());
}

Cpu& Network::cpu(EndpointId endpoint) { return world_.cpu(node_of(endpoint)); }

std::shared_ptr<Roster> Network::add_endpoints(const std::string& name,
                                               const std::vector<Rank>& nodes) {
  auto roster = std::make_shared<Roster>(Roster{.name = name, .endpoints = {}});
  for (Rank rank = 0; rank < nodes.size(); ++rank) add_endpoint(roster, rank, nodes[rank]);
  return roster;
}

EndpointId Network::add_endpoint(const std::shared_ptr<Roster>& roster, Rank rank, Rank node) {
  for (const EndpointId known : roster->endpoints) {
    const EndpointFacts& facts = endpoints_[known];
    if (facts.rank == rank && facts.node == node && !facts.gone) return known;
  }
  const auto endpoint = static_cast<EndpointId>(endpoints_.size());
  endpoints_of_[node].push_back(endpoint);
  endpoints_.push_back(
      {.node = node, .rank = rank, .roster = roster, .slot = roster->endpoints.size()});
  roster->endpoints.push_back(endpoint);
  return endpoint;
}

void Network::endpoint(EndpointId endpoint, SimBackend& fabric) {
  endpoints_[endpoint].fabric = &fabric;
}

/// Sets the fabric of an endpoint late. A node that has failed meanwhile is silent from now on.
void Network::endpoint_late(EndpointId endpoint, SimBackend& fabric) {
  EndpointFacts& facts = endpoints_[endpoint];
  facts.fabric = &fabric;
  while (!facts.early.empty()) fabric.arrived(facts.early.pop_front());
  for_each_peer(endpoint, [&](EndpointId peer) {
    Link& from = link(peer, endpoint);
    from.silent = false;
    update_silence(from);
  });
}

/// Takes an endpoint out. What it has posted goes on as far as its NIC can: the NIC has the bytes,
/// and no caller asks for results.
void Network::leave(EndpointId endpoint) {
  pool_.for_each_of(endpoint, [&](Flight& flight) {
    flight.completion = nullptr;
    if (flight.local != nullptr) capture(flight);
    flight.local = nullptr;
  });
  drop_arrived(endpoint);
  endpoints_[endpoint].fabric = nullptr;
  endpoints_[endpoint].gone = true;
  std::erase(endpoints_of_[node_of(endpoint)], endpoint);
  for_each_peer(endpoint, [&](EndpointId peer) {
    stall_all(link(peer, endpoint).held.take_all());
    retire_all(link(peer, endpoint).unheard.take_all());
    if (!link(endpoint, peer).broken) send_farewell(endpoint, peer);
    update_silence(link(endpoint, peer));
  });
}

void Network::send_farewell(EndpointId from, EndpointId to) {
  Flight& flight = pool_.take(from);
  flight.kind = FlightKind::farewell;
  flight.to = to;
  flight.ready = cpu(from).clock();
  post(flight);
}

bool Network::unreachable(const Flight& flight) {
  const EndpointId end = heading_for(flight);
  return nic(end).dead() || wire_of(flight).broken || endpoints_[end].gone;
}

/// Hands an arrival to the fabric; or to the endpoint, for the fabric that is to come.
void Network::hand_over(Flight& flight) {
  EndpointFacts& target = endpoints_[flight.to];
  if (target.fabric != nullptr) {
    target.fabric->arrived(flight);
  } else if (flight.kind == FlightKind::farewell) {
    target.left.push_back(rank_of(flight.from));
    retire(flight);
  } else {
    target.early.push_back(flight);
  }
  wake(flight.to);
}

SimBackend::RemoteMemory Network::target_of(const Flight& flight) const noexcept {
  const SimBackend* const fabric = endpoints_[flight.to].fabric;
  if (fabric == nullptr) return {};
  return fabric->reach(flight.region);
}

bool Network::can_meet(Rank one, Rank other) {
  return !nics_[one].dead() && !nics_[other].dead() && !path(one, other).cut &&
         !path(other, one).cut;
}

Ticks Network::round_trip(Rank one, Rank other) {
  const Ticks latency = world_.costs.write_latency;
  return jittered(latency, path(one, other)) + jittered(latency, path(other, one));
}

}  // namespace dunlin::sim

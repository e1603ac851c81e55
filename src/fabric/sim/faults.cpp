#include <string>

#include "fabric/sim/simulation.hpp"

/// The faults, and how the nodes notice them.
///
/// Heartbeats are not simulated one by one: while nothing changes, they come through, so a fault
/// schedules the one moment at which the silence that it begins would be noticed.
namespace dunlin::sim {

// --- flights that cannot go on -------------------------------------------------------------------

/// Stalls a flight: its sender's NIC repeats it until the link is healed, or it has waited too
/// long.
void Network::stall(Flight& flight) {
  if (nic(flight.from).dead() || flight.dead || flight.kind == FlightKind::notice)
    return retire(flight);
  Link& wire = link(flight.from, flight.to);
  const Ticks timeout = saturating_add(flight.sent, world_.costs.retry_timeout);
  wire.stalled.push_back(flight);
  if (wire.retrying) return;
  wire.retrying = true;
  world_.timeline.schedule(timeout, Happening::retry, wire.index);
}

void Network::stall_all(FlightList flights) {
  while (!flights.empty()) stall(flights.pop_front());
}

void Network::retire_all(FlightList flights) {
  while (!flights.empty()) retire(flights.pop_front());
}

void Network::drop(Flight& flight) { flight.is_atomic() ? stall(flight) : retire(flight); }

void Network::on_retry(std::uint64_t link_index) {
  Link& wire = *links_[link_index];
  wire.retrying = false;
  if (wire.stalled.empty() || nic(wire.from).dead()) return;
  const Ticks timeout = saturating_add(wire.stalled.front().sent, world_.costs.retry_timeout);
  if (timeout > now()) {
    wire.retrying = true;
    return world_.timeline.schedule(timeout, Happening::retry, link_index);
  }
  close(wire.from, wire.to);
  if (endpoints_[wire.from].fabric == nullptr) return;
  endpoints_[wire.from].fabric->lost(
      wire.to, "an operation was not acknowledged within " +
                   std::to_string(to_ns(world_.costs.retry_timeout) / 1000) + " us");
}

void Network::retry_stalled(Link& wire) {
  if (wire.broken) return;
  const Link& back = link(wire.to, wire.from);
  FlightList flights = wire.stalled.take_all();
  while (!flights.empty()) {
    Flight& flight = flights.pop_front();
    const bool blocked = flight.delivered ? back.path.cut : wire.path.cut || !wire.stalled.empty();
    if (blocked) {
      stall(flight);
    } else if (flight.kind == FlightKind::message && flight.delivered) {
      message_handled(flight, now());
    } else if (flight.delivered) {
      acknowledge_later(flight);
    } else {
      flight.responding = false;
      flight.steps_done = 0;
      launch(flight);
    }
  }
}

// --- giving up -----------------------------------------------------------------------------------

/// Fails a flight that its sender has given up: it completes with an error, and its holder drops
/// it.
void Network::fail(Flight& flight) {
  const bool heard = flight.delivered && !flight.is_operation();
  if (flight.dead || heard) return;
  if (flight.completion != nullptr)
    endpoints_[flight.from].fabric->finished(*flight.completion, flight.to, true);
  flight.completion = nullptr;
  flight.local = nullptr;
  flight.dead = true;
}

void Network::close(EndpointId observer, EndpointId peer) {
  Link& out = link(observer, peer);
  if (out.closed) return;
  out.closed = out.broken = true;
  link(peer, observer).broken = true;
  pool_.for_each_of(observer, [&](Flight& flight) {
    if (flight.to == peer) fail(flight);
  });
  retire_all(out.stalled.take_all());
  retire_all(out.held.take_all());
  stall_all(link(peer, observer).held.take_all());
  out.slots.reset();
  wake(observer);
  update_silence(out);
}

void Network::abandon(EndpointId owner, const Completion& completion) {
  pool_.for_each_of(owner, [&](Flight& flight) {
    if (flight.completion != &completion) return;
    flight.completion = nullptr;
    capture(flight);
    flight.local = nullptr;
  });
}

void Network::forget_memory(EndpointId owner, std::span<const std::byte> memory) {
  pool_.for_each_of(owner, [&](Flight& flight) {
    const bool inside =
        flight.local >= memory.data() && flight.local < memory.data() + memory.size();
    if (flight.local == nullptr || !inside) return;
    capture(flight);
    flight.local = nullptr;
  });
}

// --- silence -------------------------------------------------------------------------------------

void Network::cpu_changed(Rank node) {
  for (const EndpointId endpoint : endpoints_of_[node])
    for_each_peer(endpoint, [&](EndpointId peer) { update_silence(link(endpoint, peer)); });
}

void Network::update_silence(Link& wire) {
  const bool silent =
      !cpu(wire.from).computes() || wire.path.cut || wire.broken || endpoints_[wire.from].gone;
  if (silent == wire.silent) return;
  wire.silent = silent;
  ++wire.silence_generation;
  const Costs& costs = world_.costs;
  if (!silent || costs.silence_timeout == 0) return;
  // The last heartbeat left at a multiple of the interval.
  const Ticks interval = costs.heartbeat_interval;
  const Ticks last_sent = interval == 0 ? now() : now() - now() % interval;
  const Ticks noticed = last_sent + costs.write_latency + costs.silence_timeout;
  world_.timeline.schedule(noticed, Happening::silence, wire.index << 32 | wire.silence_generation);
}

void Network::on_silence(std::uint64_t subject) {
  const Link& wire = *links_[subject >> 32];
  const auto generation = static_cast<std::uint32_t>(subject);
  if (wire.silence_generation != generation || link(wire.to, wire.from).closed) return;
  if (SimBackend* const observer = endpoints_[wire.to].fabric)
    observer->suspect(wire.from, generation);
}

// --- faults --------------------------------------------------------------------------------------

/// Drops operations that the CPU would have posted after this moment.
void Network::drop_unsent(Rank node) {
  Nic& sender = nics_[node];
  FlightList unsent = sender.outbox.take_all();
  while (!unsent.empty()) {
    Flight& flight = unsent.pop_front();
    if (flight.ready > now() || sender.dead()) {
      retire(flight);
    } else {
      sender.outbox.push_back(flight);
    }
  }
}

void Network::delay_unsent(Rank node, Ticks by) {
  FlightList unsent = nics_[node].outbox.take_all();
  while (!unsent.empty()) {
    Flight& flight = unsent.pop_front();
    if (flight.ready > now()) flight.ready = saturating_add(flight.ready, by);
    nics_[node].outbox.push_back(flight);
  }
}

void Network::crash(Rank node) {
  Nic& dying = nics_[node];
  if (dying.dead()) return;
  dying.died_at = now();
  drop_unsent(node);
  stall_all(dying.responses.take_all());
  for (const EndpointId endpoint : endpoints_of_[node]) {
    drop_arrived(endpoint);
    for_each_peer(endpoint,
                  [&](EndpointId peer) { stall_all(link(peer, endpoint).held.take_all()); });
  }
  cpu_changed(node);
}

/// Drops arrivals that no program has handled yet.
void Network::drop_arrived(EndpointId endpoint) {
  EndpointFacts& facts = endpoints_[endpoint];
  FlightList inbox = facts.fabric != nullptr ? facts.fabric->take_inbox() : facts.early.take_all();
  while (!inbox.empty()) drop(inbox.pop_front());
}

template <class Visit>
void Network::for_each_link(Rank from, Rank to, Visit visit) {
  for (const EndpointId endpoint : endpoints_of_[from])
    for_each_peer(endpoint, [&](EndpointId peer) {
      if (node_of(peer) == to) visit(link(endpoint, peer));
    });
}

void Network::cut(Rank from, Rank to) {
  path(from, to).cut = true;
  for_each_link(from, to, [&](Link& wire) { update_silence(wire); });
}

void Network::heal(Rank from, Rank to) {
  path(from, to).cut = false;
  for_each_link(from, to, [&](Link& wire) {
    update_silence(wire);
    retry_stalled(wire);
    retry_stalled(link(wire.to, wire.from));
  });
}

void Network::slow_link(Rank from, Rank to, double factor) {
  Path& slowed = path(from, to);
  const Profile& profile = world_.profile;
  const bool same_rack = from % profile.racks == to % profile.racks;
  slowed.distance = factor * (same_rack ? 1.0 : profile.cross_rack_latency);
  slowed.pace = factor / (same_rack ? 1.0 : profile.cross_rack_bandwidth);
}

/// Frees the sender's room. Without a way back, the sender does not learn of it, as of an operation
/// that is not acknowledged.
void Network::message_handled(Flight& message, Ticks at) {
  Link& wire = link(message.from, message.to);
  if (link(message.to, message.from).path.cut) {
    message.sent = now();
    return stall(message);
  }
  const Ticks told = at + way_back(message);
  const std::uint64_t amount = SimBackend::ring_bytes(message.bytes);
  give_back(wire, wire.message_ring, amount, told);
  retire(message);
}

}  // namespace dunlin::sim

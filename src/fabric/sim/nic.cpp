#include <algorithm>
#include <cstring>

#include <dunlin/fabric/memory.hpp>

#include "fabric/sim/simulation.hpp"

/// Sending, travelling, arriving, acknowledging.
namespace dunlin::sim {

Network::Network(Simulation& world)
    : world_(world),
      ordered_(world.profile.ordered_placement),
      gated_(!world.profile.ordered_placement || !world.profile.native_atomics) {}

Ticks Network::now() const noexcept { return world_.timeline.now; }

void Network::wake(EndpointId endpoint) { cpu(endpoint).wake(now()); }

void Network::schedule(Ticks at, Happening what, Flight& flight) {
  ++flight.pending;
  world_.timeline.schedule(at, what, flight);
}

void Network::retire(Flight& flight) {
  flight.dead = true;
  flight.completion = nullptr;
  flight.local = nullptr;
  if (flight.pending == 0) pool_.release(flight);
}

void Network::on_flight(Happening what, Flight& flight) {
  --flight.pending;
  if (flight.dead) return retire(flight);
  switch (what) {
    case Happening::arrive:
      return arrive(flight);
    case Happening::step:
      return step(flight);
    case Happening::fetch:
      return fetch(flight);
    default:
      return complete(flight);
  }
}

// --- sending -------------------------------------------------------------------------------------

void Network::post(Flight& flight) {
  ++posted_;
  Nic& sender = nic(flight.from);
  if (sender.dead() || cpu(flight.from).stopped()) return retire(flight);
  if (flight.wire_bytes() <= world_.profile.max_inline_bytes) capture(flight);
  sender.outbox.push_back(flight);
  schedule_transmit(node_of(flight.from));
}

/// Takes the source's bytes; a message's bytes are in the flight already.
void Network::capture(Flight& flight) {
  if (flight.captured || !flight.places_bytes() || flight.bytes == 0) return;
  flight.captured = true;
  flight.make_room();
  if (flight.kind == FlightKind::put) {
    memory::copy_unwatched(flight.data(), flight.local, flight.bytes);
  } else {
    memory::fetch(flight.data(), flight.local, flight.bytes);
  }
}

void Network::schedule_transmit(Rank node) {
  Nic& sender = nics_[node];
  Ticks ready = kNever;
  if (!sender.outbox.empty()) ready = sender.outbox.front().ready;
  if (!sender.responses.empty()) ready = std::min(ready, sender.responses.front().ready);
  if (ready == kNever) return;
  const Ticks at = std::max({ready, sender.transmit_free, now()});
  if (sender.transmit_at <= at) return;
  sender.transmit_at = at;
  world_.timeline.schedule(at, Happening::transmit, node);
}

void Network::on_transmit(Rank node) {
  Nic& sender = nics_[node];
  if (sender.transmit_at != now()) return;  // an earlier occurrence has done this one's work
  sender.transmit_at = kNever;
  const auto due = [this](const FlightList& list) {
    return !list.empty() && list.front().ready <= now();
  };
  if (due(sender.responses)) {
    respond(sender.responses.pop_front());
  } else if (due(sender.outbox)) {
    launch(sender.outbox.pop_front());
  }
  schedule_transmit(node);
}

void Network::launch(Flight& flight) {
  if (flight.dead) return retire(flight);
  capture(flight);
  number(flight);
  flight.sent = now();
  Link& wire = link(flight.from, flight.to);
  if (wire.path.cut || wire.broken || !wire.stalled.empty()) return stall(flight);
  travel(flight, latency_of(flight));
}

void Network::respond(Flight& flight) {
  if (flight.dead) return retire(flight);
  if (link(flight.to, flight.from).path.cut) return stall(flight);
  flight.ready = now();
  flight.pace = wire_of(flight).path.pace;
  fetch(flight);
  travel(flight, world_.costs.read_half);
}

Ticks Network::latency_of(const Flight& flight) const noexcept {
  const Costs& costs = world_.costs;
  if (flight.kind == FlightKind::read) return costs.read_half;
  if (flight.is_atomic()) return costs.atomic_half;
  if (flight.kind == FlightKind::message) return costs.message_latency;
  return costs.write_latency;
}

Ticks Network::jittered(Ticks latency, const Path& path) {
  double factor = path.distance;
  if (world_.costs.jitter > 0)
    factor *= 1.0 + world_.costs.jitter * (2.0 * world_.network_random.fraction() - 1.0);
  return scaled(latency, factor);
}

/// Occupies the port, then the path; arrives when its first run of bytes is at the other end.
void Network::travel(Flight& flight, Ticks latency) {
  const Costs& costs = world_.costs;
  Nic& sender = nic(flight.responding ? flight.to : flight.from);
  Path& wire = wire_of(flight).path;
  const std::size_t bytes = flight.wire_bytes();
  sender.transmit_free = now() + std::max(costs.nic_gap, costs.on_wire(bytes));

  flight.left = std::max(now(), wire.wire_free);
  flight.pace = wire.pace;
  wire.wire_free = flight.left + costs.on_wire(bytes, flight.pace);
  const std::size_t first = bytes == 0 ? 0 : run(flight, 0).end;
  Ticks arrival = flight.left + jittered(latency, wire) + costs.on_bus(bytes) +
                  costs.to_last(first, flight.pace);
  if (ordered_) {
    arrival = std::max(arrival, wire.last_arrival);
    wire.last_arrival = arrival;
  } else if (!flight.responding) {
    shuffle(flight);
  }
  schedule(arrival, Happening::arrive, flight);
}

// --- arriving ------------------------------------------------------------------------------------

Ticks BusyWords::begin(const Flight& atomic, Ticks now, Ticks earliest, Ticks gap) {
  if (free_at_.size() >= limit_) {
    std::erase_if(free_at_, [now](const auto& word) { return word.second <= now; });
    limit_ = std::max(kFirstLimit, 2 * free_at_.size());
  }
  Ticks& free = free_at_[{atomic.to, atomic.region, atomic.offset}];
  const Ticks begin = std::max(earliest, free);
  free = begin + gap;
  return begin;
}

/// When a flight that could begin at that moment does, as its word may be busy; so may be the word
/// of an earlier atomic, which what follows on its wire waits for. The port is free meanwhile.
Ticks Network::behind_busy_words(const Flight& flight, Ticks begin) {
  Path& wire = wire_of(flight).path;
  Ticks later = ordered_ ? std::max(begin, wire.word_busy_until) : begin;
  if (flight.is_atomic())
    later = nic(flight.to).words.begin(flight, now(), later, world_.costs.same_word_gap);
  if (later > begin)
    wire.word_busy_until = later + world_.costs.to_last(flight.wire_bytes(), flight.pace) + 1;
  return later;
}

/// Waits for the port, at which other flights may be arriving, and for the atomic unit.
void Network::arrive(Flight& flight) {
  if (unreachable(flight)) return stall(flight);
  Nic& receiver = nic(heading_for(flight));
  Path& wire = wire_of(flight).path;
  const Costs& costs = world_.costs;
  const std::size_t bytes = flight.wire_bytes();
  const Ticks to_first = bytes == 0 ? 0 : costs.to_last(run(flight, 0).end, flight.pace);
  Ticks begin = std::max(now() - std::min(now(), to_first), receiver.receive_free);
  if (ordered_) begin = std::max(begin, wire.receive_free);
  receiver.receive_free = begin + std::max(costs.nic_gap, costs.on_wire(bytes));
  if (flight.is_atomic()) {
    begin = std::max(begin, receiver.atomic_free);
    receiver.atomic_free = begin + costs.nic_gap;
  }
  // The next bytes on this wire are placed strictly later, however fast the wire is.
  const Ticks last_due = begin + costs.to_last(bytes, flight.pace);
  wire.receive_free = std::max(begin + costs.on_wire(bytes, flight.pace), last_due + 1);
  if (last_due <= now()) wire.receive_free = now();
  if (costs.same_word_gap > 0) begin = behind_busy_words(flight, begin);
  flight.begin = begin;
  if (gated_) acknowledge_early(flight);
  const Ticks first_due = begin + to_first;
  if (first_due > now()) return schedule(first_due, Happening::step, flight);
  step(flight);
}

// --- acknowledging -------------------------------------------------------------------------------

void Network::give_back(Link& link, Budget& budget, std::uint64_t amount, Ticks at) {
  budget.give_back_at(at, amount);
  if (!budget.wanted()) return;
  budget.told();
  world_.timeline.schedule(at, Happening::wake, node_of(link.from));
}

Ticks Network::way_back(const Flight& flight) {
  const Costs& costs = world_.costs;
  const Ticks half = flight.is_atomic() ? costs.atomic_half : costs.read_half;
  return scaled(half, link(flight.to, flight.from).path.distance);
}

/// Completes locally: a signal may have to wait for its turn at the target, a local completion need
/// not.
void Network::acknowledge_early(Flight& flight) {
  if (!flight.places_bytes() || flight.completion == nullptr || flight.when != Notify::locally)
    return;
  const Link& back = link(flight.to, flight.from);
  if (back.path.cut || back.broken) return;
  Flight& notice = pool_.take(flight.from);
  notice.kind = FlightKind::notice;
  notice.to = flight.to;
  notice.completion = flight.completion;
  flight.completion = nullptr;
  const Ticks received = flight.begin + world_.costs.on_wire(flight.bytes);
  schedule(std::max(received, now()) + way_back(flight), Happening::acknowledge, notice);
}

/// Acknowledges a flight that is done at its target. If no caller waits for it, only its queue slot
/// returns to the sender.
void Network::acknowledge_later(Flight& flight) {
  flight.delivered = true;
  if (nic(flight.from).dead()) return retire(flight);
  Link& wire = link(flight.from, flight.to);
  Link& back = link(flight.to, flight.from);
  if (back.path.cut || back.broken) return stall(flight);
  const Ticks at = now() + way_back(flight);
  give_back(wire, wire.slots, 1, at);
  const bool has_result = flight.is_atomic() && flight.local != nullptr;
  if (flight.completion == nullptr && !has_result) return retire(flight);
  schedule(at, Happening::acknowledge, flight);
}

void Network::complete(Flight& flight) {
  if (flight.is_atomic() && flight.local != nullptr && !flight.failed)
    memory::place(flight.local, &flight.result, sizeof(flight.result));
  if (flight.completion != nullptr)
    endpoints_[flight.from].fabric->finished(*flight.completion, flight.to, flight.failed);
  wake(flight.from);
  retire(flight);
}

}  // namespace dunlin::sim

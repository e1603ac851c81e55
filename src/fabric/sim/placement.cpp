#include <algorithm>
#include <cstring>
#include <numeric>

#include <dunlin/fabric/memory.hpp>

#include "fabric/sim/simulation.hpp"

/// Places and fetches memory, in the order of the network. No other part of the simulator touches
/// memory.
namespace dunlin::sim {

namespace {

/// The most runs of lines in which an operation is placed. Each line is placed at the moment when
/// its bytes arrive; a longer operation goes in so many equal runs, so that a megabyte does not
/// take 16,384 events.
constexpr std::size_t kMaxRuns = 64;

std::size_t lines_of(const Flight& f) noexcept {
  const std::size_t lines =
      (f.offset % kCacheLineBytes + f.bytes + kCacheLineBytes - 1) / kCacheLineBytes;
  return std::max<std::size_t>(lines, 1);
}

std::size_t lines_a_run(std::size_t lines) noexcept { return (lines + kMaxRuns - 1) / kMaxRuns; }

}  // namespace

std::uint32_t Network::runs_of(const Flight& flight) const noexcept {
  const std::size_t lines = lines_of(flight);
  const std::size_t each = lines_a_run(lines);
  return static_cast<std::uint32_t>((lines + each - 1) / each);
}

Network::Run Network::run(const Flight& flight, std::uint32_t index) const noexcept {
  const std::size_t shift = flight.offset % kCacheLineBytes;
  if (shift + flight.bytes <= kCacheLineBytes) return {0, flight.bytes};
  const std::size_t length = lines_a_run(lines_of(flight)) * kCacheLineBytes;
  const std::size_t begin = index * length;
  return {begin == 0 ? 0 : begin - shift, std::min(begin + length - shift, flight.bytes)};
}

/// Chooses an order of placement, where that is free: any rotation with any stride that visits all
/// runs.
void Network::shuffle(Flight& flight) {
  const std::uint32_t runs = runs_of(flight);
  if (runs < 2) return;
  Random& random = world_.network_random;
  flight.first_step = static_cast<std::uint32_t>(random.below(runs));
  do flight.stride = 1 + static_cast<std::uint32_t>(random.below(runs));
  while (std::gcd(flight.stride, runs) != 1);
}

std::uint32_t Network::shuffled(const Flight& flight, std::uint32_t step) const noexcept {
  if (ordered_) return step;
  const std::uint64_t place = flight.first_step + std::uint64_t{step} * flight.stride;
  return static_cast<std::uint32_t>(place % runs_of(flight));
}

// --- the order of signals (FAB-F1) ---------------------------------------------------------------

void Network::number(Flight& flight) {
  if (!gated_ || flight.numbered || !flight.is_ordered()) return;
  flight.numbered = true;
  flight.order = link(flight.from, flight.to).next_order++;
}

bool Network::must_wait(Flight& flight) {
  if (!gated_ || !flight.is_signal() || flight.steps_done > 0) return false;
  Link& wire = link(flight.from, flight.to);
  if (flight.order == wire.first_missing) return false;
  wire.held.insert_by_order(flight);
  return true;
}

void Network::mark_placed(Link& wire, std::uint64_t order) {
  while (wire.placed_beyond.size() <= order - wire.first_missing)
    wire.placed_beyond.push_or_grow(0);
  wire.placed_beyond[order - wire.first_missing] = 1;
  while (!wire.placed_beyond.empty() && wire.placed_beyond.front() != 0) {
    wire.placed_beyond.pop();
    ++wire.first_missing;
  }
  if (!wire.held.empty() && wire.held.front().order == wire.first_missing)
    schedule(now(), Happening::step, wire.held.pop_front());
}

/// Called when the target's memory holds all that it ever will of this flight.
void Network::settled(Flight& flight) {
  if (flight.numbered) mark_placed(link(flight.from, flight.to), flight.order);
}

// --- at the target -------------------------------------------------------------------------------

void Network::step(Flight& flight) {
  if (unreachable(flight)) return stall(flight);
  if (flight.responding) return step_at_reader(flight);
  if (must_wait(flight)) return;
  step_at_target(flight);
}

void Network::step_at_target(Flight& flight) {
  switch (flight.kind) {
    case FlightKind::put:
    case FlightKind::write:
      return place_run(flight);
    case FlightKind::read:
      return accept_read(flight);
    case FlightKind::compare_swap:
    case FlightKind::fetch_add:
      if (world_.profile.native_atomics) return execute_atomic(flight);
      break;
    default:
      flight.delivered = true;
      settled(flight);
  }
  hand_over(flight);
}

void Network::place_run(Flight& flight) {
  const Costs& costs = world_.costs;
  const std::uint32_t runs = runs_of(flight);
  for (;;) {
    const Run due = run(flight, shuffled(flight, flight.steps_done));
    if (flight.left + costs.to_last(due.end, flight.pace) > nic(flight.from).died_at)
      return retire(flight);  // these bytes were never sent
    place(flight, due);
    if (++flight.steps_done == runs || flight.failed) {
      settled(flight);
      return acknowledge_later(flight);
    }
    const Ticks next =
        flight.begin + costs.to_last(run(flight, flight.steps_done).end, flight.pace);
    if (next > now()) return schedule(next, Happening::step, flight);
  }
}

void Network::place(Flight& flight, Run due) {
  const SimBackend::RemoteMemory reach = target_of(flight);
  flight.failed = reach.memory == nullptr || reach.bytes < flight.offset + flight.bytes;
  if (flight.failed || due.end == due.begin) return;
  const auto copy = flight.kind == FlightKind::put ? memory::copy_unwatched : memory::place;
  copy(reach.memory + flight.offset + due.begin, flight.data() + due.begin, due.end - due.begin);
  wake(flight.to);
}

void Network::execute_atomic(Flight& flight) {
  const SimBackend::RemoteMemory reach = target_of(flight);
  flight.failed = reach.memory == nullptr || reach.bytes < flight.offset + flight.bytes;
  if (!flight.failed) {
    std::byte* word = reach.memory + flight.offset;
    flight.result = flight.kind == FlightKind::fetch_add
                        ? memory::fetch_add(word, flight.operand)
                        : memory::compare_swap(word, flight.operand, flight.desired);
    world_.timeline.digest.fold(flight.result);
    wake(flight.to);
  }
  settled(flight);
  acknowledge_later(flight);
}

// --- reads ---------------------------------------------------------------------------------------

void Network::accept_read(Flight& flight) {
  flight.responding = true;
  flight.steps_done = flight.steps_fetched = 0;
  flight.ready = now();
  flight.make_room();
  nic(flight.to).responses.push_back(flight);
  schedule_transmit(node_of(flight.to));
}

/// Fetches a run of lines, which the target's NIC reads when it is their turn to be sent.
void Network::fetch(Flight& flight) {
  if (!flight.responding || nic(flight.to).dead()) return;
  fetch_run(flight);
  if (flight.failed || flight.steps_fetched == runs_of(flight)) return;
  const Run next = run(flight, flight.steps_fetched);
  const Ticks due = flight.ready + world_.costs.on_wire(next.begin, flight.pace);
  schedule(due, Happening::fetch, flight);
}

void Network::fetch_run(Flight& flight) {
  if (flight.steps_fetched == runs_of(flight)) return;
  const SimBackend::RemoteMemory reach = target_of(flight);
  flight.failed = reach.memory == nullptr || reach.bytes < flight.offset + flight.bytes;
  if (flight.failed) return;
  const Run due = run(flight, shuffled(flight, flight.steps_fetched++));
  if (due.end == due.begin) return;
  const std::byte* from = reach.memory + flight.offset + due.begin;
  memory::fetch(flight.data() + due.begin, from, due.end - due.begin);
}

void Network::step_at_reader(Flight& flight) {
  // On a path without length, bytes arrive as they are fetched.
  if (flight.steps_fetched <= flight.steps_done && !nic(flight.to).dead()) fetch_run(flight);
  if (!flight.failed && flight.steps_fetched <= flight.steps_done) return stall(flight);
  Link& wire = link(flight.from, flight.to);
  if (!flight.failed) {
    const Run due = run(flight, shuffled(flight, flight.steps_done));
    if (flight.local != nullptr && due.end > due.begin)
      memory::place(flight.local + due.begin, flight.data() + due.begin, due.end - due.begin);
  }
  if (!flight.failed && ++flight.steps_done < runs_of(flight)) {
    const Run next = run(flight, flight.steps_done);
    const Ticks due = flight.begin + world_.costs.to_last(next.end, flight.pace);
    return schedule(due, Happening::step, flight);
  }
  give_back(wire, wire.slots, 1, now());
  complete(flight);
}

}  // namespace dunlin::sim

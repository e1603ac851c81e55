#include "fabric/sim/sim_fabric.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/alignment.hpp"
#include "fabric/sim/simulation.hpp"

namespace dunlin::sim {

SimFabric::SimFabric(Simulation& world, std::string group, const std::vector<Rank>& nodes,
                     Seat first_seat, Rank rank, bool leaves)
    : world_(world),
      node_(nodes[rank]),
      first_seat_(first_seat),
      leaves_(leaves),
      regions_(kMaxRegions),
      heard_(nodes.size()) {
  rank_ = rank;
  group_ = std::move(group);
  const Profile& profile = world.profile;
  properties_ = {.passive_target = true,
                 .ordered_placement = profile.ordered_placement,
                 .native_atomics = profile.native_atomics,
                 // A NIC that does atomics itself does not exclude the CPU's.
                 .atomics_coherent_with_cpu = !profile.native_atomics,
                 .max_inline_bytes = profile.max_inline_bytes,
                 .max_peers = kMaxMembers,
                 .queue_slots = profile.queue_slots};
  for (const Rank node : nodes) {
    peers_.emplace_back();
    peers_.back().name = "node" + std::to_string(node);
  }
}

SimFabric::~SimFabric() {
  if (leaves_) world_.network.leave(seat_of(rank_));
}

Cpu& SimFabric::cpu() const { return world_.cpu(node_); }

Link& SimFabric::link_to(Rank peer) const {
  return world_.network.link(seat_of(rank_), seat_of(peer));
}

Link& SimFabric::link_from(Rank peer) const {
  return world_.network.link(seat_of(peer), seat_of(rank_));
}

void SimFabric::poll_soon() { cpu().wake(world_.timeline.now); }

// --- time ----------------------------------------------------------------------------------------

std::uint64_t SimFabric::now_ns() const noexcept { return to_ns(cpu().clock()); }

void SimFabric::wake_at(std::uint64_t time_ns) noexcept { cpu().wake_by(ticks_of_ns(time_ns)); }

const CpuCosts* SimFabric::cpu_costs() const noexcept { return &world_.profile.cpu; }

void SimFabric::spend(double ns) noexcept { cpu().spend(ns); }

// --- posting -------------------------------------------------------------------------------------

bool SimFabric::take(Budget& budget, std::uint64_t amount, std::uint64_t capacity) noexcept {
  if (budget.take(amount, capacity, world_.timeline.now)) return true;
  const Ticks more = budget.next_return();
  if (more == kNever) return false;  // told when it is known
  budget.told();
  world_.timeline.schedule(more, Happening::wake, node_);
  return false;
}

Refusal SimFabric::check(const Operation& operation) const noexcept {
  if (operation.peer >= size()) return Refusal::unknown_peer;
  const LocalRegion* region = find(operation.region);
  if (region == nullptr) return Refusal::unknown_region;
  if (link_to(operation.peer).closed) return Refusal::none;
  const auto& peer = region->peers[operation.peer];
  if (!peer) return Refusal::not_connected;
  const std::size_t there = peer->spec.bytes;
  const std::size_t bytes = extent_of(operation);
  if (operation.offset > there || bytes > there - operation.offset) return Refusal::out_of_bounds;
  switch (operation.kind) {
    case OperationKind::put:
      return Refusal::none;
    case OperationKind::write:
    case OperationKind::read:
      return lies_alike(operation) ? Refusal::none : Refusal::misaligned;
    default:
      return lies_on_words(operation) ? Refusal::none : Refusal::misaligned;
  }
}

Posted SimFabric::post(std::span<const Operation> batch) noexcept {
  const Profile& profile = world_.profile;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (const Refusal refusal = check(batch[i]); refusal != Refusal::none) return {i, refusal};
    Link& link = link_to(batch[i].peer);
    if (!link.closed && !take(link.slots, 1, profile.queue_slots)) return {i, Refusal::queue_full};
    spend(i == 0 ? profile.post_ns : profile.post_batched_ns);
    start(batch[i]);
  }
  return {batch.size(), Refusal::none};
}

void SimFabric::start(const Operation& operation) noexcept {
  if (operation.completion != nullptr) begin(*operation.completion);
  if (link_to(operation.peer).closed) {
    if (operation.completion != nullptr)
      finished(*operation.completion, seat_of(operation.peer), true);
    return;
  }
  Flight& flight = world_.network.new_flight();
  flight.kind = static_cast<FlightKind>(operation.kind);
  flight.when = operation.when;
  flight.from = seat_of(rank_);
  flight.to = seat_of(operation.peer);
  const Announcement& there = *regions_[operation.region.index].peers[operation.peer];
  flight.region_index = there.index;
  flight.region_serial = there.serial;
  flight.offset = operation.offset;
  flight.bytes = extent_of(operation);
  flight.local = static_cast<std::byte*>(operation.local);
  flight.operand = operation.operand;
  flight.desired = operation.desired;
  flight.completion = operation.completion;
  launch(flight);
}

void SimFabric::launch(Flight& flight) noexcept {
  flight.ready = cpu().clock();
  world_.network.post(flight);
}

Refusal SimFabric::send(Rank peer, std::uint32_t channel,
                        std::span<const std::byte> message) noexcept {
  if (peer >= size()) return Refusal::unknown_peer;
  if (channel >= kMaxChannels || message.size() > kMaxMessageBytes) return Refusal::too_large;
  Link& link = link_to(peer);
  if (link.closed) return Refusal::none;  // as an operation without completion
  if (!take(link.message_ring, ring_bytes(message.size()), kMessageRingBytes))
    return Refusal::queue_full;
  spend(world_.profile.post_ns);
  Flight& flight = world_.network.new_flight();
  flight.kind = FlightKind::message;
  flight.from = seat_of(rank_);
  flight.to = seat_of(peer);
  flight.channel = channel;
  flight.bytes = message.size();
  flight.captured = true;
  flight.make_room();
  if (!message.empty()) std::memcpy(flight.data(), message.data(), message.size());
  launch(flight);
  return Refusal::none;
}

void SimFabric::abandon(Completion& completion) noexcept {
  world_.network.abandon(seat_of(rank_), completion);
  for (std::size_t i = 0; i < finished_.size(); ++i)
    if (finished_[i].completion == &completion) finished_[i].completion = nullptr;
  clear(completion);
}

// --- polling -------------------------------------------------------------------------------------

void SimFabric::finished(Completion& completion, Seat peer, bool failed) {
  finished_.push_back({&completion, rank_of(peer), failed});
  poll_soon();
}

void SimFabric::lost(Seat peer, std::string how) {
  failures_.push_back(
      {.peer = rank_of(peer), .closed = true, .silence_epoch = 0, .how = std::move(how)});
  poll_soon();
}

void SimFabric::suspect(Seat peer, std::uint32_t silence_epoch) {
  const auto silence_us = std::to_string(to_ns(world_.costs.silence_timeout) / 1000);
  failures_.push_back({.peer = rank_of(peer),
                       .closed = false,
                       .silence_epoch = silence_epoch,
                       .how = "nothing was heard of it for " + silence_us + " us"});
  poll_soon();
}

void SimFabric::channel_opened(std::uint32_t) noexcept {
  channels_opened_ = true;
  poll_soon();
}

void SimFabric::part_with_expelled(Rank peer) noexcept {
  channels_opened_ = true;  // what it said, and nobody has heard, is dropped
  world_.network.close(seat_of(rank_), seat_of(peer));
  forget(peer);
  poll_soon();
}

std::size_t SimFabric::poll() noexcept {
  if (polling_ || !world_.begin_poll(node_)) return 0;
  recent_ns_ = now_ns();
  polling_ = true;
  std::size_t handled = 0;
  // What a peer has said comes before the news of its end.
  if (channels_opened_) handled += handle_unheard();
  if (!inbox_.empty()) handled += handle_inbox();
  if (!failures_.empty()) handled += handle_failures();
  if (must_tell_expelled()) handled += tell_expelled();
  if (!matches_.empty()) handled += handle_matches();
  if (!finished_.empty()) handled += handle_finished();
  polling_ = false;
  return handled;
}

std::size_t SimFabric::handle_failures() {
  std::size_t handled = 0;
  for (Failure& failure : std::exchange(failures_, {})) {
    const Link& from = link_from(failure.peer);
    const bool heard_since = !failure.closed && from.silence_epoch != failure.silence_epoch;
    if (heard_since || failed(failure.peer)) continue;
    world_.network.close(seat_of(rank_), seat_of(failure.peer));
    forget(failure.peer);
    fail_peer(failure.peer, std::move(failure.how));
    ++handled;
  }
  return handled;
}

std::size_t SimFabric::handle_finished() {
  std::size_t handled = 0;
  while (!finished_.empty()) {
    const Finished next = finished_.front();
    finished_.pop_front();
    if (next.completion == nullptr) continue;
    ++handled;
    if (next.failed) {
      finish_failed(*next.completion, next.peer);
    } else {
      finish(*next.completion);
    }
  }
  return handled;
}

std::size_t SimFabric::handle_inbox() {
  std::size_t handled = 0;
  FlightList arrived = inbox_.take_all();
  while (!arrived.empty()) handled += handle(arrived.pop_front());
  return handled;
}

std::size_t SimFabric::handle(Flight& flight) {
  Network& network = world_.network;
  const Rank peer = rank_of(flight.from);
  if (expelled(peer)) {
    network.drop(flight);
    return 0;
  }
  switch (flight.kind) {
    case FlightKind::announcement:
      return hear_announcement(flight);
    case FlightKind::withdrawal:
      return hear_withdrawal(flight);
    case FlightKind::farewell:
      return hear_farewell(flight);
    case FlightKind::message:
      break;
    default:
      flight.dead ? network.retire(flight) : network.execute_atomic(flight);
      return 1;
  }
  Link& from = link_from(peer);
  if (!from.unheard.empty() || !deliver(peer, flight.channel, flight.contents())) {
    from.unheard.push_back(flight);
    return 0;
  }
  network.message_handled(flight, cpu().clock());
  return 1;
}

std::size_t SimFabric::hear_farewell(Flight& flight) {
  const Rank peer = rank_of(flight.from);
  world_.network.retire(flight);
  if (failed(peer)) return 0;
  world_.network.close(seat_of(rank_), seat_of(peer));
  forget(peer);
  fail_peer(peer, "it has left the group");
  return 1;
}

std::size_t SimFabric::handle_unheard() {
  channels_opened_ = false;
  std::size_t handled = 0;
  for (Rank peer = 0; peer < size(); ++peer) {
    FlightList& waiting = link_from(peer).unheard;
    while (!waiting.empty()) {
      Flight& first = waiting.front();
      if (!deliver(peer, first.channel, first.contents())) break;
      world_.network.message_handled(waiting.pop_front(), cpu().clock());
      ++handled;
    }
  }
  return handled;
}

}  // namespace dunlin::sim
